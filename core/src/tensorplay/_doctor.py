"""`tp doctor`: a table of everything installed, with state, reason and the command that helps."""
from __future__ import annotations

import sys

from . import _fallback, _plugins
from ._errors import PluginError, TensorPlayError
from ._explain import coverage, load_all
from ._namespaces import IN_TREE
from ._plugins import API_LEVEL, BUILT_IN, GROUPS, Plugin, has_package, installed, kind_of, plugins, printable
from ._scan import name_and_version, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER = ("KIND", "NAME", "STATE", "DISTRIBUTION", "VERSION", "API")


class Row:
    def __init__(self, kind: str, name: str, state: str, distribution: str, version: str, api: str = "-",
                 notes: list[str] | None = None) -> None:
        self.cells = tuple([printable(cell) for cell in (kind, name, state, distribution, version, api)])
        self.notes = [note for note in notes or [] if note]


def report() -> str:
    failed = load_all()
    rows = [*_built_in_rows(), *_plugin_rows(), *_missing_rows()]
    table = [HEADER, *[row.cells for row in rows]]
    widths = [max([len(cells[i]) for cells in table]) for i in range(len(HEADER))]
    lines = [f"TensorPlay {sys.modules['tensorplay'].__version__}, plugin API level {API_LEVEL} (accepts "
             f"{API_LEVEL - 1}), Python {sys.version.split()[0]}", ""]
    for cells, notes in [(HEADER, []), *[(row.cells, row.notes) for row in rows]]:
        lines.append("  ".join([cell.ljust(width) for cell, width in zip(cells, widths)]).rstrip())
        lines += [f"    {note}" for note in notes]
    for title, texts in (("Host fallbacks in this process", _fallback_lines()),
                         ("Operator modules that cannot be imported", failed),
                         ("Metadata that cannot be read",
                          [f"{path}: {problem}" for path, problem in installed().problems]),
                         ("Strangers", list(_strangers())), ("From tools", _tool_lines())):
        if texts:
            lines += ["", f"{title}:", *[f"    {printable(text)}" for text in texts]]
    return "\n".join(lines)


def _version_of(distribution: str) -> str:
    folder = installed().folders.get(distribution)
    return name_and_version(folder)[1] if folder else "not installed as a distribution"


def _built_in_rows() -> Iterator[Row]:
    for name, (module, _, distribution) in BUILT_IN.items():
        if _plugins.preference(name) in (None, distribution):
            if has_package(module):
                state, notes = _activate(name)
                version = _version_of(distribution)
                entry = next((p for p in plugins("devices") if p.entry.name == name
                              and p.entry.distribution == distribution), None)
                yield Row("device", name, state, distribution, version, _api(entry) if entry else str(API_LEVEL), notes)


def _activate(name: str) -> tuple[str, list[str]]:
    """(state, notes) of a device after trying to use it."""
    try:
        _plugins.activate_device(name)
    except TensorPlayError as error:
        return "failed" if isinstance(error, PluginError) else "unavailable", [error.message]
    return "active", [_coverage(name)]


def _coverage(name: str) -> str:
    try:
        return f"operators: {coverage(name)}"
    except Exception as error:
        return f"operators: cannot be counted: {_plugins.describe(error)}"


def _plugin_rows() -> Iterator[Row]:
    for group in GROUPS:
        for plugin in plugins(group):
            name, distribution = plugin.entry.name, plugin.entry.distribution
            if not (group == "devices" and name in BUILT_IN and distribution == BUILT_IN[name][2]
                    and _plugins.preference(name) in (None, distribution)):
                yield _plugin_row(group, plugin)


def _plugin_row(group: str, plugin: Plugin) -> Row:
    notes = []
    rivals = [p for p in plugins(group) if p.entry.name == plugin.entry.name and p is not plugin]
    chosen = _plugins.preference(plugin.entry.name)
    try:
        plugin.prepare()
        if rivals and plugin.entry.distribution != chosen:
            notes.append(f"not used: {' and '.join([p.title for p in rivals])} provides {plugin.entry.name!r} too; "
                         f"TP_PREFER={plugin.entry.name}:{plugin.entry.distribution} chooses this one")
        elif group == "devices":
            notes += _activate(plugin.entry.name)[1] if plugin.state != "failed" else []
        elif group == "tools":
            from ._hookspecs import manager

            manager()
        elif plugin.entry.value.partition(":")[0] in sys.modules and plugin.state == "discovered":
            plugin.state = "active"
    except TensorPlayError:
        pass  # recorded in the plugin
    if plugin.state in ("unavailable", "failed"):
        notes = [f"reason: {plugin.reason}", f"fix: {plugin.fix}" if plugin.fix else ""]
    if plugin.manifest is not None and plugin.manifest.requires:
        notes.append(f"requires: {printable(', '.join(plugin.manifest.requires))}")
    entry = plugin.entry
    return Row(kind_of(group), entry.name, plugin.state, entry.distribution, entry.version, _api(plugin), notes)


def _api(plugin: Plugin) -> str:
    try:
        manifest = plugin.prepare()
    except TensorPlayError:
        return "?"
    return str(manifest.written) if manifest.oldest == manifest.written else f"{manifest.oldest}-{manifest.written}"


def _missing_rows() -> Iterator[Row]:
    """In-tree parts that are known by name and not installed."""
    known = [("device", "cpu", BUILT_IN["cpu"][0], "tp-cpu"), ("ops", "operators", "tp_operators", "tp-operators"),
             *[("namespace", name, package, distribution) for name, (package, distribution) in IN_TREE.items()]]
    for kind, name, package, distribution in known:
        if not has_package(package):
            yield Row(kind, name, "missing", distribution, "-", "-", [f"fix: pip install {distribution}"])


def _fallback_lines() -> list[str]:
    return [f"{op} on {device}: {count}" for (op, device), count in sorted(_fallback.counts.items())]


def _strangers() -> Iterator[str]:
    """Other people's packages under our names: `tensorplay` on the public index is one."""
    folder = installed().folders.get("tensorplay")
    if folder is None:
        return
    try:
        metadata = read_file(f"{folder}/METADATA") or read_file(f"{folder}/PKG-INFO") or ""
    except (OSError, ValueError) as problem:
        metadata = str(problem)
    if "\nRequires-Dist: tp-core" not in metadata:
        name, version = name_and_version(folder)
        yield (f"{name} {version} ({folder}) is not TensorPlay's meta distribution but somebody else's package; it may "
               f"have overwritten TensorPlay's files: pip uninstall {name}, then reinstall tp-core")


def _tool_lines() -> list[str]:
    if not plugins("tools"):
        return []
    from ._hookspecs import call

    lines = []
    for rows in call("tensorplay_doctor_rows"):
        try:
            lines += [f"{name}: {text}" for name, text in rows]
        except Exception as error:
            lines.append(f"rows that cannot be shown: {_plugins.describe(error)}")
    return lines
