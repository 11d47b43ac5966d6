"""`site`: a temporary folder on sys.path into which a test installs made-up distributions."""
from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

# A complete device of 30 lines: memory that nobody else sees, and no kernels.
HEAP_DRIVER = """
from tensorplay.driver import Driver
from tensorplay._storage import Storage

class HeapDriver(Driver):
    name = "{name}"
    def allocate(self, nbytes, device):
        return Storage(bytearray(nbytes), nbytes, device)
    def copy_from_host(self, storage, data):
        storage.data[:] = bytes(data)
    def copy_to_host(self, storage):
        return bytes(storage.data)
"""
MANIFEST = 'api = {{ written = {level}, oldest = {level} }}\nprovides = ["device:{name}"]\nload = "{name}"\n'


class Site:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.packages: set[str] = set()

    def install(self, distribution: str, groups: dict[str, dict[str, str]], files: dict[str, str] | None = None,
                version: str = "1.0", metadata: str = "", folder: Path | None = None) -> Path:
        """Write a distribution's metadata, and its files (into `folder` for an editable install)."""
        info = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n{metadata}")
        lines = [f"[tensorplay.{group}]\n" + "".join([f"{name} = {value}\n" for name, value in entries.items()])
                 for group, entries in groups.items()]
        (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
        for path, text in (files or {}).items():
            file = (folder or self.folder) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            self.packages.add(path.partition("/")[0])
        importlib.invalidate_caches()
        return info

    def device(self, name: str, distribution: str = "", driver: str = HEAP_DRIVER, manifest: str = MANIFEST,
               level: int = 1, package: str = "", **more: str) -> None:
        """A distribution with one device; `more` are further files of its package, by module name."""
        package = package or f"{name}_package"
        files = {f"{package}/__init__.py": more.pop("init", ""),
                 f"{package}/driver.py": driver.format(name=name),
                 f"{package}/plugin.toml": manifest.format(name=name, level=level)}
        files.update({f"{package}/{module}.py": text for module, text in more.items()})
        self.install(distribution or f"tp-{name}", {"devices": {name: f"{package}:plugin.toml"},
                                                    "drivers": {name: f"{package}.driver:HeapDriver"}}, files)


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    made = Site(folder)
    yield made
    for module in list(sys.modules):
        if module.partition(".")[0] in made.packages:
            del sys.modules[module]


def device_named(name: str):
    """A device for a test, which is skipped if its distribution is not there."""
    import tensorplay as tp
    from tensorplay.library import TensorPlayError, register_driver

    if name == "cpu":
        pytest.importorskip("tp_cpu")
    elif name == "refdev":
        refdev = pytest.importorskip("tp_testkit.refdev")
        try:
            return tp.device(name)
        except TensorPlayError:  # its entry point is not installed
            register_driver(name, refdev.RefDriver())
    return tp.device(name)


@pytest.fixture
def refdev():
    """The device `refdev`."""
    return device_named("refdev")


@pytest.fixture(params=["cpu", "refdev"])
def place(request):
    """The device on which a test runs: the native one, and the one without anything but the required primitives."""
    return device_named(request.param)
