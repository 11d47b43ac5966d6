"""Plugins: which are installed, in what state they are, and how a device gets its driver.

The states are discovered -> unavailable(reason, fix) | failed(exception) | active. Discovery imports nothing. Code of a
plugin runs when its device is first asked for, and whatever it raises becomes a designed error with the reason, the
distribution and the command that helps; no plugin can break `import tensorplay` or another device.
"""
from __future__ import annotations

import os
import sys
from _thread import RLock

from . import _device
from ._errors import ConflictError, DeviceUnavailable, PluginError, TensorPlayError, ValueRangeError
from ._op import held_over_fork
from ._scan import Entry, Installed, normalized, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._manifest import Manifest
    from .driver import Driver

API_LEVEL = 1  # of core's contract with plugins; plugins of this level and of the one before it are accepted
GROUPS = ("devices", "ops", "autograd", "compilers", "namespaces", "tools", "collectives")  # of manifests
BUILT_IN = {"cpu": ("tp_cpu", "CpuDriver", "tp-cpu"), "meta": ("tensorplay.driver", "MetaDriver", "tp-core")}
PROVIDERS = {"cpu": "tp-cpu", "cuda": "tp-cuda", "rocm": "tp-rocm", "hip": "tp-rocm", "vulkan": "tp-vulkan",
             "refdev": "tp-testkit"}
_REQUIRED_METHODS = ("allocate", "copy_from_host", "copy_to_host")

_class = type  # functions below have a parameter `type`, as tp.device has
_lock = held_over_fork(RLock())
_scanned: tuple[tuple, Installed] | None = None
_known: dict[tuple, Plugin] = {}


class Plugin:
    """An installed plugin and how far it has got."""

    __slots__ = ("entry", "state", "reason", "fix", "error", "manifest", "target")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.state = "discovered"
        self.reason = self.fix = ""
        self.error: BaseException | None = None
        self.manifest: Manifest | None = None
        self.target: Any = None

    @property
    def title(self) -> str:
        return printable(f"{self.entry.distribution} {self.entry.version}")

    def fail(self, reason: str, fix: str = "", error: BaseException | None = None) -> PluginError:
        self.state, self.reason, self.error = "failed", printable(reason), error
        if not fix and not isinstance(error, TensorPlayError):  # whose message says itself what to do
            fix = f"pip install --upgrade --force-reinstall {self.entry.distribution}"
        self.fix = printable(fix)
        return self.problem()

    def problem(self) -> Any:
        """The error to raise for an unavailable or failed plugin."""
        kind = kind_of(self.entry.group.rpartition(".")[2])
        text = f"{kind} {printable(self.entry.name)!r} ({self.title})"
        if self.state == "unavailable":
            error: Any = DeviceUnavailable(f"{text} is unavailable: {self.reason}{_then(self.fix)}."
                                           f"{_others(kind)}")
        else:
            error = PluginError(f"{text} failed: {self.reason}{_then(self.fix)}.{_others(kind)}")
        error.__cause__ = self.error
        return error

    def prepare(self) -> Manifest:
        """The manifest, read and checked against core's API level."""
        if self.manifest is None:
            from ._manifest import read_manifest

            try:
                manifest = read_manifest(self.entry)
            except Exception as error:
                raise self.fail(f"its manifest cannot be used: {describe(error)}", error=error) from None
            if not self.entry.name.isidentifier():
                raise self.fail("its name is not an identifier, so nothing can ask for it")
            refused = _api_mismatch(self, manifest)
            if refused:
                raise self.fail(*refused)
            self.manifest = manifest
        return self.manifest

    def run(self, what: str, function: Callable, *args: Any, **named: Any) -> Any:
        """Call the plugin's code. Whatever it raises, SystemExit too, is recorded and becomes a PluginError."""
        try:
            return function(*args, **named)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise self.fail(f"{what} raised {describe(error)}", error=error) from error

    def probe(self) -> None:
        """Ask the plugin whether its device can be used here."""
        path = self.prepare().probe
        if path is not None:
            answer = self.run(f"its probe {path}", _probe_answer, path)
            if answer is not None:
                self.state, self.error = "unavailable", None
                self.reason, self.fix = answer
                raise self.problem()

    def load(self) -> Any:
        """The object that the manifest's `load` names: the entry of tensorplay.drivers in the same distribution;
        without `load`, the package itself."""
        if self.state == "failed":
            raise self.problem()
        if self.target is None:
            name = self.prepare().load
            if name is None:
                package = self.entry.value.partition(":")[0]
                self.target = self.run(f"import {package}", _module, package)
            else:
                driver = next((e for e in installed().entries if e.group == "tensorplay.drivers" and e.name == name
                               and e.distribution == self.entry.distribution), None)
                if driver is None:
                    raise self.fail(f"its manifest says load = {name!r}, and it has no such entry in the group "
                                    f"tensorplay.drivers")
                self.target = self.run(f"loading {driver.value}", _resolve_driver, driver)
        return self.target


def _then(fix: str) -> str:
    return f"; try: {fix}" if fix else ""


def printable(text: str, longest: int = 500) -> str:
    """Text of a stranger, safe to print: one line, no control characters, of bounded length."""
    text = "".join([c if c.isprintable() else " " for c in text[:longest + 1]])
    return text if len(text) <= longest else text[:longest] + "..."


def describe(error: BaseException) -> str:
    try:
        message = error.message if isinstance(error, TensorPlayError) else str(error)
    except Exception:
        message = "(its message cannot be shown)"
    return printable(f"{type(error).__name__}: {message}" if message else type(error).__name__)


def _api_mismatch(plugin: Plugin, manifest: Manifest) -> tuple[str, str] | None:
    """(reason, fix) unless the plugin's range of API levels meets core's."""
    if manifest.oldest <= API_LEVEL and manifest.written >= API_LEVEL - 1:
        return None
    newer = manifest.oldest > API_LEVEL
    core = f"tp-core {sys.modules['tensorplay'].__version__}"
    return (f"it is written to API level {manifest.written} and accepts {manifest.oldest} at the oldest; {core} has "
            f"level {API_LEVEL} and accepts {API_LEVEL - 1}",
            "pip install --upgrade " + ("tp-core" if newer else printable(plugin.entry.distribution)))


def _module(name: str) -> Any:
    __import__(name)
    return sys.modules[name]


def _attribute(path: str) -> Any:
    module, _, names = path.partition(":")
    found = _module(module)
    for name in names.split("."):
        found = getattr(found, name)
    return found


def _probe_answer(path: str) -> tuple[str, str] | None:
    """None if the device can be used, else (reason, fix)."""
    answer = _attribute(path)()
    if answer is None or answer is True:
        return None
    reason, fix = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, "")
    return printable(str(reason or "its probe says no")), printable(str(fix or ""))


def _resolve_driver(entry: Entry) -> Any:
    """stevedore loads the class. It is given the one entry point that was chosen: its own search would also import the
    other distributions' entries of that name, and keeps a cache that is stale after an installation."""
    from importlib.metadata import EntryPoint

    from stevedore.driver import DriverManager

    class OneDriver(DriverManager):
        def list_entry_points(self) -> list:
            return [EntryPoint(entry.name, entry.value, entry.group)]

    def failed(manager: object, entry_point: object, error: BaseException) -> None:
        raise error

    return OneDriver(entry.group, entry.name, on_load_failure_callback=failed).driver


def installed(fresh: bool = False) -> Installed:
    """The scan's result, kept as long as `sys.path` does not change."""
    global _scanned
    path = tuple(map(str, sys.path))
    if fresh or _scanned is None or _scanned[0] != path:
        _scanned = (path, scan())
    return _scanned[1]


def plugins(group: str, name: str | None = None) -> list[Plugin]:
    """The plugins of a group (`"devices"`), with one name if given. A name that is not found is looked for again, since
    it may have been installed a moment ago."""
    def find(fresh: bool) -> list[Plugin]:
        return [_known.setdefault(e.key, Plugin(e)) for e in installed(fresh).entries
                if e.group == f"tensorplay.{group}" and name in (None, e.name)]

    return find(False) or (find(True) if name is not None else [])


def preference(name: str) -> str | None:
    """The distribution that TP_PREFER chooses for a name: `TP_PREFER=cuda:tp-cuda,acme:acme-two`."""
    for part in os.environ.get("TP_PREFER", "").split(","):
        key, colon, distribution = part.strip().partition(":")
        if part.strip() and not (colon and key and distribution):
            raise ValueRangeError(f"TP_PREFER={os.environ['TP_PREFER']!r} in the environment: expected "
                                  f"name:distribution, several separated by commas, such as cuda:tp-cuda")
        if key == name:
            return distribution
    return None


def choose(kind: str, name: str, providers: list[Plugin]) -> Plugin:
    """The provider to use. ConflictError if there are several and TP_PREFER does not choose."""
    wanted = preference(name)
    if wanted is not None:
        chosen = [p for p in providers if normalized(p.entry.distribution) == normalized(wanted)]
        if not chosen:
            raise PluginError(f"TP_PREFER chooses {wanted} for {kind} {name!r}, which is provided by "
                              f"{' and '.join([p.title for p in providers])}")
        return chosen[0]
    if len(providers) > 1:
        last = providers[-1].entry.distribution
        raise ConflictError(f"{kind} {name!r} is provided by {' and by '.join([p.title for p in providers])}: "
                            f"uninstall one (pip uninstall {last}) or choose one with TP_PREFER={name}:{last}")
    return providers[0]


def activate_device(type: str) -> Driver:
    """The driver of a device type, ready to use; or the designed error that says why there is none."""
    wanted = preference(type)
    if type in BUILT_IN and wanted in (None, BUILT_IN[type][2]):
        driver = _built_in_driver(type)
        if driver is not None:
            return driver
    providers = plugins("devices", type)
    if not providers:
        raise _unknown_device(type)
    plugin = choose("device", type, providers)
    plugin_class = plugin.load() if plugin.state == "active" else _loaded_after_probe(plugin)
    driver = plugin.run("its driver", _make_driver, type, plugin_class)
    plugin.state, plugin.reason, plugin.fix, plugin.error = "active", "", "", None
    _announce(type, driver, False)
    return driver


def _loaded_after_probe(plugin: Plugin) -> Any:
    if plugin.state == "failed":
        raise plugin.problem()
    plugin.probe()
    return plugin.load()


def _built_in_driver(type: str) -> Driver | None:
    """The driver of an in-tree device, found without a scan; None if its distribution is not installed."""
    module, name, distribution = BUILT_IN[type]
    try:
        driver = _make_driver(type, getattr(_module(module), name))
    except (KeyboardInterrupt, TensorPlayError):  # nonsense in TP_NUM_THREADS is not cured by a new installation
        raise
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and error.name == module:
            return None
        raise PluginError(f"device {type!r} ({distribution}) failed: {describe(error)}; try: pip install --upgrade "
                          f"--force-reinstall {distribution}.{_others('device', type)}") from error
    _announce(type, driver, True)
    return driver


def _make_driver(type: str, cls: Any) -> Driver:
    from .driver import Driver

    if not (isinstance(cls, _class) and issubclass(cls, Driver)):
        raise TypeError(f"{cls!r} is not a subclass of tensorplay.driver.Driver")
    missing = [name for name in _REQUIRED_METHODS if getattr(cls, name) is getattr(Driver, name)]
    if missing:
        raise TypeError(f"{cls.__name__} does not define {', '.join(missing)}, which every driver must")
    with _lock:
        if type in _device._drivers:
            return _device._drivers[type]
        driver = cls()
        if driver.name != type:
            raise ValueError(f"{cls.__name__}.name is {driver.name!r}, it must be {type!r}")
        count = driver.device_count()
        if count.__class__ is not int or count < 1:
            raise ValueError(f"{cls.__name__}.device_count() is {count!r}, it must be at least 1")
        _device.register_driver(type, driver)
        return driver



def _announce(type: str, driver: Driver, built_in: bool) -> None:
    """Tell tool plugins. In-tree devices do not load pluggy for that; hooks made later hear of them then."""
    if "tensorplay._hookspecs" in sys.modules or not built_in and plugins("tools"):
        from ._hookspecs import device_activated

        device_activated(type, driver)


def operator_sets() -> list[Any]:
    """Operator sets that were not loaded before: objects (without `load` in the manifest, packages) whose FUNCTIONS and
    METHODS are those of `tp_operators._index` and NN_FUNCTIONS may be missing."""
    found = []
    for plugin in plugins("ops"):
        if plugin.state == "discovered" and not plugin.entry.value.startswith("tp_operators:"):
            try:
                found.append(plugin.run("its operator index", _index_of, plugin.load()))
                plugin.state = "active"
            except PluginError:
                pass  # recorded in the plugin
    return found


def _index_of(source: Any) -> Any:
    from types import SimpleNamespace

    tables = {name: dict(getattr(source, name)) for name in ("FUNCTIONS", "METHODS")}
    return SimpleNamespace(NN_FUNCTIONS=dict(getattr(source, "NN_FUNCTIONS", {})), **tables)


def kind_of(group: str) -> str:
    """What a plugin of a group is called: "device", "namespace", "ops"..."""
    return group[:-1] if group.endswith("s") and group != "ops" else group


def has_package(module: str) -> bool:
    """Whether a module's top-level package could be imported; it is not."""
    from ._manifest import find_spec

    package = module.partition(".")[0]
    return package in sys.modules or find_spec(package) is not None


def present_devices() -> list[str]:
    """Names of devices that are installed and have not failed."""
    names = [name for name, (module, _, _) in BUILT_IN.items() if has_package(module)]
    others = [p.entry.name for p in plugins("devices") if p.state in ("discovered", "active")]
    return list(dict.fromkeys([*names, *[printable(name) for name in others if name not in BUILT_IN]]))


def _others(kind: str, failing: str = "") -> str:
    names = [name for name in present_devices() if name != failing] if kind == "device" else []
    return f" Devices here: {', '.join(names)}" if names else ""


def _unknown_device(type: str) -> DeviceUnavailable:
    distribution = PROVIDERS.get(type)
    if type == "cpu":
        return DeviceUnavailable("device 'cpu' is provided by tp-cpu, which is not installed: pip install tp-cpu; "
                                 "'meta' works without it")
    if distribution is not None:
        return DeviceUnavailable(f"device {type!r} is provided by {distribution}, which is not installed: pip install "
                                 f"{distribution}.{_others('device')}")
    from difflib import get_close_matches

    close = get_close_matches(type, [*present_devices(), *PROVIDERS], 1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return DeviceUnavailable(f"there is no device {printable(type)!r}{hint}{_others('device')}")
