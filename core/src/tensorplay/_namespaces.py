"""`tensorplay.nn`, `tensorplay.optim`...: names under which other distributions' packages are imported.

One finder, first on `sys.meta_path`, answers with the real module: `tensorplay.nn.cache` and `tp_nn.cache` are one
object, so two import paths never make two classes. `import tensorplay` loads none of them. A package imports its own
modules by their real names (`from .cache import ...`): with the others, two threads could wait for each other.
"""
from __future__ import annotations

import sys

from ._errors import MissingAttributeError, MissingModuleError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

IN_TREE = {  # name below tensorplay -> (package, distribution)
    "nn": ("tp_nn", "tp-nn"), "optim": ("tp_optim", "tp-optim"), "io": ("tp_io", "tp-io"),
    "data": ("tp_data", "tp-data"), "stax": ("tp_stax", "tp-stax"), "autograd": ("tp_tpx", "tp-tpx"),
    "testing": ("tp_testkit", "tp-testkit"), "distributed": ("tp_distributed", "tp-distributed"),
    "linalg": ("tp_operators.linalg", "tp-operators"), "fft": ("tp_operators.fft", "tp-operators"),
}
_ROOT = "tensorplay."


class Alias:
    """A loader whose module is another one, already loaded or loaded now."""

    def __init__(self, real: str) -> None:
        self.real = real
        self.spec: Any = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        __import__(self.real)
        module = sys.modules[self.real]
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # the import system has put the alias' spec there


class Finder:
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not fullname.startswith(_ROOT):
            return None
        name, dot, rest = fullname[len(_ROOT):].partition(".")
        package = package_of(name)
        if package is None:
            return None
        real = f"{package}.{rest}" if dot else package
        if real not in sys.modules and not _exists(real, path if dot else None):
            if not dot:
                error = MissingModuleError(missing(name))
                error.name = package
                raise error
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(fullname, Alias(real), origin=real)


def package_of(name: str) -> str | None:
    """The package behind `tensorplay.<name>`, or None if that is no namespace (but, say, one of core's modules)."""
    package = IN_TREE[name][0] if name in IN_TREE else None
    if package is not None and (package in sys.modules or _exists(package, None)):
        return package
    if name[:1] == "_" or (package is None and _is_core_module(name)):
        return None
    from ._plugins import choose, plugins

    providers = plugins("namespaces", name)
    if not providers:
        return package
    provider = choose("namespace", name, providers)
    provider.prepare()
    provider.state = "active"
    return provider.entry.value.partition(":")[0]


def _is_core_module(name: str) -> bool:
    return _exists(f"{_ROOT}{name}", sys.modules["tensorplay"].__path__)


def _exists(name: str, path: Any) -> bool:
    from ._manifest import find_spec

    parent = name.rpartition(".")[0]
    if parent and path is None:
        found = find_spec(parent, skip=finder)
        if found is None:
            return False
        path = found.submodule_search_locations
    return find_spec(name, path, skip=finder) is not None


def missing(name: str) -> str:
    distribution = IN_TREE[name][1]
    return f"tensorplay.{name} is provided by {distribution}, which is not installed: pip install {distribution}"


def provides(name: str) -> bool:
    """Whether `tensorplay.<name>` is a namespace, installed or known."""
    return name in IN_TREE or package_of(name) is not None


def attribute(name: str) -> ModuleType:
    """`tp.nn`: the namespace's module, imported now. MissingAttributeError says what to install."""
    try:
        return __import__(f"tensorplay.{name}", fromlist=["_"])
    except MissingModuleError as error:
        raise MissingAttributeError(error.message) from None


finder = Finder()
sys.meta_path.insert(0, finder)
