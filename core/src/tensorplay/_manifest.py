"""Manifests: the TOML file in a plugin's package that says what it is, read without importing the package.

    api = { written = 1, oldest = 1 }      # API level it was written to, oldest one it works with
    provides = ["device:acme"]
    probe = "tp_acme._probe:probe"         # None, or (reason, fix) if the device cannot be used; imported before `load`
    load = "acme"                          # the entry of group tensorplay.drivers that holds the class
    requires = ["libacme >= 2"]            # in words, for `tp doctor`
    conformance = "conformance.json"       # the report of tp-testkit, in the same package
"""
from __future__ import annotations

import os
import sys

from ._scan import Entry, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LARGEST_MANIFEST = 1 << 16
_TEXTS = ("probe", "load", "conformance")
_LISTS = ("provides", "requires")


class Manifest:
    """The checked fields of a manifest."""

    __slots__ = ("written", "oldest", "provides", "requires", "probe", "load", "conformance", "path")

    def __init__(self, data: dict, path: str) -> None:
        self.path = path
        api = data.get("api")
        if not isinstance(api, dict):
            raise ValueError("it has no `api = { written = ..., oldest = ... }`")
        self.written = _level(api, "written")
        self.oldest = _level(api, "oldest")
        if self.oldest > self.written:
            raise ValueError(f"api.oldest = {self.oldest} is above api.written = {self.written}")
        for field in _TEXTS:
            value = data.get(field)
            if value is not None and (not isinstance(value, str) or not value):
                raise ValueError(f"{field} must be a non-empty string, it is {value!r}")
            setattr(self, field, value)
        for field in _LISTS:
            value = data.get(field, [])
            if not isinstance(value, list) or not all([isinstance(one, str) for one in value]):
                raise ValueError(f"{field} must be a list of strings, it is {value!r}")
            setattr(self, field, value)


def _level(api: dict, field: str) -> int:
    value = api.get(field)
    if value.__class__ is not int or not 0 <= value < 1 << 31:
        raise ValueError(f"api.{field} must be a non-negative integer, it is {value!r}")
    return value


def read_manifest(entry: Entry) -> Manifest:
    """The manifest that `NAME = top_package:file.toml` points to; ValueError says what is wrong with it."""
    package, colon, file = entry.value.partition(":")
    if not colon or not package.isidentifier() or not file.endswith(".toml"):
        raise ValueError(f"the entry point is {entry.name} = {entry.value!r}; expected top_package:file.toml")
    if os.path.isabs(file) or ".." in file.replace("\\", "/").split("/"):
        raise ValueError(f"the manifest {file!r} lies outside the package {package}")
    folders = package_folders(package)
    if not folders:
        raise ValueError(f"the package {package!r} is not on sys.path")
    for folder in folders:
        path = os.path.join(folder, file)
        text = read_file(path, LARGEST_MANIFEST)
        if text is not None:
            return Manifest(_toml(text), path)
    raise ValueError(f"{file} is not in the package {package} ({', '.join(folders)})")


def package_folders(package: str) -> list[str]:
    """Where a top-level package lies. The finders are asked, which imports nothing and knows editable installs."""
    loaded = sys.modules.get(package)
    if loaded is not None:
        return [str(path) for path in getattr(loaded, "__path__", ())]
    spec = find_spec(package)
    return [str(path) for path in (spec and spec.submodule_search_locations) or ()]


def find_spec(name: str, path: Any = None, skip: Any = None) -> Any:
    """The spec of a module that need not be imported, from the first finder that knows it."""
    for finder in list(sys.meta_path):
        ask = None if finder is skip else getattr(finder, "find_spec", None)
        spec = ask(name, path) if ask else None
        if spec is not None:
            return spec
    return None


def _toml(text: str) -> dict[str, Any]:
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10
        import tomli as tomllib  # type: ignore[no-redef]
    return tomllib.loads(text)
