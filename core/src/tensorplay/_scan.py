"""What is installed: our own reading of every `entry_points.txt` on `sys.path`. Nothing is imported.

`importlib.metadata` takes 40 to 50 times as long. Nothing that a foreign distribution contains makes the scan fail:
what cannot be read is listed in `Installed.problems` and shown by `tp doctor`.
"""
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "tensorplay."
LARGEST_FILE = 1 << 20
_REGULAR_FILE = 0o100000


class Entry:
    """One line `name = value` of an entry-point group, and the distribution it comes from."""

    __slots__ = ("group", "name", "value", "distribution", "version", "folder")

    def __init__(self, group: str, name: str, value: str, distribution: str, version: str, folder: str) -> None:
        self.group = group
        self.name = name
        self.value = value
        self.distribution = distribution
        self.version = version
        self.folder = folder  # the dist-info or egg-info folder

    @property
    def key(self) -> tuple:
        return self.group, self.name, self.value, self.distribution, self.version, self.folder


class Installed:
    """The result of a scan: entries, metadata folder by normalized distribution name, problems."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.folders: dict[str, str] = {}
        self.problems: list[tuple[str, str]] = []  # (file, what is wrong)


def normalized(name: str) -> str:
    """The form in which distribution names are compared: `TP_Cpu` and `tp-cpu` are one."""
    return "-".join([part for part in name.lower().replace("_", "-").replace(".", "-").split("-") if part])


def scan() -> Installed:
    """Read the metadata of every distribution on `sys.path`; of several with one name the first counts."""
    found = Installed()
    for path in dict.fromkeys(sys.path):
        try:
            names = os.listdir(path or ".")
        except (OSError, ValueError, TypeError):
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                key = normalized(name.rpartition(".")[0].partition("-")[0])
                if found.folders.setdefault(key, os.path.join(path, name)) == os.path.join(path, name):
                    _read_distribution(os.path.join(path, name), found)
    return found


def _read_distribution(folder: str, found: Installed) -> None:
    file = os.path.join(folder, "entry_points.txt")
    try:
        text = read_file(file)
        if text is None or PREFIX not in text:
            return
        name, version = name_and_version(folder)
        found.entries += [Entry(group, key, value, name, version, folder) for group, key, value in _parse(text)]
    except Exception as problem:
        found.problems.append((file, str(problem) or type(problem).__name__))


def read_file(path: str, largest: int = LARGEST_FILE) -> str | None:
    """The text of a regular file of bounded size, None if there is none; OSError or ValueError if it is not for us."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if status.st_mode & 0o170000 != _REGULAR_FILE:
        raise ValueError("not a regular file")
    if status.st_size > largest:
        raise ValueError(f"{status.st_size} bytes, more than the {largest} that such a file may have")
    with open(path, "rb") as file:
        return file.read(largest).decode("utf-8", "replace")


def _parse(text: str) -> Iterator[tuple[str, str, str]]:
    group = ""
    for line in text.splitlines():
        line = line.strip()
        if line[:1] == "[" and line[-1:] == "]":
            group = line[1:-1].strip()
        elif group.startswith(PREFIX) and line[:1] not in ("", "#", ";"):
            name, equals, value = line.partition("=")
            if equals and name.strip():
                yield group, name.strip(), value.partition("[")[0].strip()


def name_and_version(folder: str) -> tuple[str, str]:
    """A distribution's own spelling of its name, and its version, from METADATA (PKG-INFO in an egg-info)."""
    stem = os.path.basename(folder).rpartition(".")[0]
    name, _, version = stem.partition("-")
    try:
        text = read_file(os.path.join(folder, "METADATA")) or read_file(os.path.join(folder, "PKG-INFO")) or ""
    except (OSError, ValueError):
        text = ""
    for line in text.splitlines():
        field, _, value = line.partition(":")
        if not field.strip():
            break  # the description follows
        if field == "Name" and value.strip():
            name = value.strip()
        elif field == "Version" and value.strip():
            version = value.strip()
    return name, version or "unknown"
