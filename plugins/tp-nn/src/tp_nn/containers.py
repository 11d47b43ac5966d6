"""Modules and parameters in sequences and mappings."""
from __future__ import annotations

from tensorplay.library import IndexRangeError

from .module import Module, RegistryError
from .parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any


class _Sequence(Module):
    """What Sequential and ModuleList share: modules under the names '0', '1', ..."""

    def _fill(self, modules: list) -> None:
        for name in list(self._modules):
            delattr(self, name)
        for i, module in enumerate(modules):
            self.register_module(str(i), module)

    def _list(self) -> list:
        return list(self._modules.values())

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._list())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            made = type(self)()
            for name, module in list(self._modules.items())[index]:
                made.register_module(name if isinstance(self, Sequential) else str(len(made)), module)
            return made
        try:
            return self._list()[index]
        except IndexError:
            raise IndexRangeError(f"index {index} is out of range for {type(self).__name__} of length "
                                  f"{len(self)}") from None

    def __setitem__(self, index: int, module: Module) -> None:
        self[index]  # says so if there is none
        self.register_module(list(self._modules)[index], module)

    def __delitem__(self, index: Any) -> None:
        modules = self._list()
        del modules[index]
        self._fill(modules)

    def append(self, module: Module) -> Any:
        """Add a module at the end."""
        self.register_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable) -> Any:
        """Add several modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Put a module before the one at `index`."""
        modules = self._list()
        modules.insert(index, module)
        self._fill(modules)
        return self

    def pop(self, index: Any = -1) -> Module:
        """Take a module out and return it."""
        found = self[index]
        del self[index]
        return found


class Sequential(_Sequence):
    """Modules called one after the other.

    >>> import tensorplay as tp
    >>> tp.nn.Sequential(tp.nn.Linear(4, 8), tp.nn.ReLU(), tp.nn.Linear(8, 3))(tp.ones(2, 4)).shape
    tensorplay.Size([2, 3])
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], dict):
            for name, module in modules[0].items():
                self.register_module(name, module)
        else:
            for i, module in enumerate(modules):
                self.register_module(str(i), module)

    def forward(self, input: Any) -> Any:  # noqa: A002
        for module in self._modules.values():
            input = module(input)  # noqa: A001
        return input


class ModuleList(_Sequence):
    """A list of modules whose parameters belong to the module that holds it."""

    def __init__(self, modules: Iterable | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __iadd__(self, modules: Iterable) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable) -> ModuleList:
        return ModuleList([*self, *other])


class ModuleDict(Module):
    """A dict of modules whose parameters belong to the module that holds it."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        if key not in self._modules:
            raise RegistryError(f"ModuleDict has no module {key!r}; it has {', '.join(self._modules) or 'none'}")
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.register_module(key, module)

    def __delitem__(self, key: str) -> None:
        self[key]  # says so if there is none
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple]:
        """Pairs of name and module."""
        return self._modules.items()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add or replace modules from a mapping or pairs."""
        for key, module in dict(modules).items():
            self[key] = module

    def pop(self, key: str) -> Module:
        """Take a module out and return it."""
        found = self[key]
        del self[key]
        return found

    def clear(self) -> None:
        """Take all modules out."""
        for key in list(self._modules):
            del self[key]


class ParameterList(Module):
    """A list of parameters."""

    def __init__(self, values: Iterable | None = None) -> None:
        super().__init__()
        self._size = 0
        for value in values or ():
            self.append(value)

    def append(self, value: Any) -> ParameterList:
        """Add a parameter (a tensor is made one) at the end."""
        setattr(self, str(self._size), value if isinstance(value, Parameter) else Parameter(value))
        self._size += 1
        return self

    def extend(self, values: Iterable) -> ParameterList:
        """Add several parameters at the end."""
        for value in values:
            self.append(value)
        return self

    def __len__(self) -> int:
        return self._size

    def _name(self, index: int) -> str:
        if not -self._size <= index < self._size:
            raise IndexRangeError(f"index {index} is out of range for ParameterList of length {self._size}")
        return str(index % self._size)

    def __getitem__(self, index: int) -> Any:
        return self._parameters[self._name(index)]

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._name(index), value if isinstance(value, Parameter) else Parameter(value))

    def __iter__(self) -> Iterator:
        return iter(list(self._parameters.values()))

    def extra_repr(self) -> str:
        return "\n".join([f"  ({name}): Parameter containing: [{p.dtype} of size {'x'.join(map(str, p.layout.shape))}]"
                          for name, p in self._parameters.items()])
