"""Module: parameters, buffers and submodules under names, and the call.

The three registries are dicts; their values are also plain instance attributes, so that `self.weight` in a forward is
an ordinary attribute read.
"""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import ArgumentError, TensorPlayError

from .hooks import HookSet
from .parameter import Buffer, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from typing_extensions import Self

    from tensorplay import Tensor

_PLAIN = (int, float, str, bool, tuple, type(None))


class RegistryError(TensorPlayError, KeyError):
    """A name under which a module cannot hold anything, or holds nothing."""


class Module:
    """Base class of layers and models: assign parameters and submodules in `__init__`, compute in `forward`.

    >>> import tensorplay as tp
    >>> class Scale(tp.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = tp.nn.Parameter(tp.tensor(2.0))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale()(tp.ones(2)).tolist()
    [2.0, 2.0]
    """

    training: bool
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]

    def __init__(self) -> None:
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_modules"] = {}
        state["_not_persistent"] = set()
        state["_hooks"] = None

    def forward(self, *args: Any, **named: Any) -> Any:
        """What calling the module computes. Every module defines its own."""
        raise NotImplementedError(f"{type(self).__name__} has no forward method")

    def __call__(self, *args: Any, **named: Any) -> Any:
        try:
            if self._hooks is None:
                return self.forward(*args, **named)
            return self._hooks.call(self, args, named)
        except TensorPlayError as error:
            place_in_path(self, error)
            raise

    # ---- registries -------------------------------------------------------------------------------------------------
    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        if value.__class__ not in _PLAIN or name in state.get("_parameters", ()) or name in state.get("_modules", ()) \
                or name in state.get("_buffers", ()):
            self._register(name, value)
        else:
            object.__setattr__(self, name, value)

    def _register(self, name: str, value: Any) -> None:
        state = self.__dict__
        if isinstance(value, (Parameter, Module)) and "_parameters" not in state:
            raise ArgumentError(f"{type(self).__name__}: call super().__init__() before assigning {name!r}")
        if "_parameters" not in state:
            object.__setattr__(self, name, value)
            return
        if isinstance(value, Parameter):
            self._move(name, self._parameters, value)
        elif isinstance(value, Module):
            self._move(name, self._modules, value)
        elif isinstance(value, Buffer):
            self._move(name, self._buffers, value)
            if not value.persistent:
                self._not_persistent.add(name)
        elif name in self._parameters:
            if value is not None:
                raise ArgumentError(f"{type(self).__name__}.{name} is a parameter: assign a tp.nn.Parameter or None, "
                                    f"not {type(value).__name__}")
            self._parameters[name] = None
        elif name in self._buffers:
            if value is not None and not isinstance(value, tp.Tensor):
                raise ArgumentError(f"{type(self).__name__}.{name} is a buffer: assign a Tensor or None, not "
                                    f"{type(value).__name__}")
            self._buffers[name] = value
        elif name in self._modules:
            if value is not None:
                raise ArgumentError(f"{type(self).__name__}.{name} is a submodule: assign a Module or None, not "
                                    f"{type(value).__name__}")
            self._modules[name] = None
        object.__setattr__(self, name, value)

    def _move(self, name: str, into: dict[str, Any] | None, value: Any) -> None:
        """Let `name` stand in one registry only; a name that stands there already keeps its place."""
        for registry in (self._parameters, self._buffers, self._modules):
            if registry is not into:
                registry.pop(name, None)
        self._not_persistent.discard(name)
        if into is not None:
            if name not in into:
                self._check_name(name)
            into[name] = value

    def __delattr__(self, name: str) -> None:
        if name not in self.__dict__:
            getattr(self, name)  # says so, with the nearest name; a class attribute is left to Python
        else:
            self._move(name, None, None)
        object.__delattr__(self, name)

    def __getattr__(self, name: str) -> Any:
        """Only for names that are not there: say so, with the nearest name."""
        from difflib import get_close_matches

        if "_parameters" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}; was super().__init__() called?")
        close = get_close_matches(name, [n for n in dir(self) if n[0] != "_"], 1)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}" +
                             (f"; did you mean {close[0]!r}?" if close else ""))

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under a name; None keeps the name for later."""
        self._check_name(name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise ArgumentError(f"register_parameter({name!r}): expected a Parameter, got {type(param).__name__}")
        self._parameters[name] = param
        self.__dict__[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is part of the state but not trained."""
        self._check_name(name, self._buffers)
        if tensor is not None and not isinstance(tensor, tp.Tensor):
            raise ArgumentError(f"register_buffer({name!r}): expected a Tensor, got {type(tensor).__name__}")
        self._buffers[name] = tensor
        self.__dict__[name] = tensor
        if persistent:
            self._not_persistent.discard(name)
        else:
            self._not_persistent.add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a submodule under a name; None keeps the name for later."""
        self._check_name(name, self._modules)
        if module is not None and not isinstance(module, Module):
            raise ArgumentError(f"{type(self).__name__}: {name!r} must be a Module or None, got "
                                f"{type(module).__name__}")
        self._modules[name] = module
        self.__dict__[name] = module

    add_module = register_module

    def _check_name(self, name: str, registry: dict[str, Any] | None = None) -> None:
        if "_parameters" not in self.__dict__:
            raise ArgumentError(f"{type(self).__name__}: call super().__init__() before registering {name!r}")
        if not isinstance(name, str):
            raise ArgumentError(f"a parameter, buffer or module name must be a string, got {name!r}")
        if "." in name or not name:
            raise RegistryError(f"a parameter, buffer or module name must not be empty or contain dots, got {name!r}")
        if registry is None or name in registry:
            return
        if name in self.__dict__ or hasattr(type(self), name):
            raise RegistryError(f"{type(self).__name__} already has an attribute {name!r}; choose another name")

    # ---- walking ----------------------------------------------------------------------------------------------------
    def named_modules(self, memo: set | None = None, prefix: str = "",
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their dotted paths; each once, unless told otherwise."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct submodules."""
        return (module for _, module in self.named_children())

    def _named(self, registry: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in module.__dict__[registry].items():
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield f"{path}.{name}" if path else name, value

    def named_parameters(self, prefix: str = "", recurse: bool = True,
                         remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their dotted paths.

        >>> import tensorplay as tp
        >>> [name for name, _ in tp.nn.Linear(2, 1).named_parameters()]
        ['weight', 'bias']
        """
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each once."""
        return (value for _, value in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True,
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their dotted paths."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers, each once."""
        return (value for _, value in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The submodule at a dotted path; AttributeError names the part that is missing."""
        found: Any = self
        for name in target.split(".") if target else ():
            found = getattr(found, name)
            if not isinstance(found, Module):
                raise AttributeError(f"{target!r}: {name!r} is not a module")
        return found

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        path, _, name = target.rpartition(".")
        found = getattr(self.get_submodule(path), name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"{target!r} is not a parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._buffers:
            raise AttributeError(f"{target!r} is not a buffer")
        return module._buffers[name]

    # ---- everything below -------------------------------------------------------------------------------------------
    def apply(self, function: Callable[[Module], None]) -> Self:
        """Call `function` on every submodule and then on this one."""
        for module in self.children():
            module.apply(function)
        function(self)
        return self

    def _apply(self, change: Callable[[Tensor], Tensor]) -> Self:
        for module in self.modules():
            for value in module._parameters.values():
                if value is not None:
                    with tp.no_grad():
                        value.data = change(value.detach())
                        if value.grad is not None:
                            value.grad = change(value.grad)
            for name, value in list(module._buffers.items()):
                if value is not None:
                    module._buffers[name] = module.__dict__[name] = change(value)
        return self

    def to(self, *args: Any, **named: Any) -> Self:
        """Move to a device and convert floating point parameters and buffers to a dtype, in place."""
        from tensorplay.library import as_dtype

        dtype = named.get("dtype") or next((a for a in args if isinstance(a, tp.dtype)), None)
        device = named.get("device") or next((a for a in args if isinstance(a, (str, tp.device))), None)
        for arg in (*args, named.get("tensor")):
            if isinstance(arg, tp.Tensor):
                dtype, device = arg.dtype, arg.device
            elif arg is not None and not isinstance(arg, (tp.dtype, str, tp.device, bool)):
                raise ArgumentError(f"Module.to takes a device, a dtype or a tensor, got {type(arg).__name__} {arg!r}")
        unknown = set(named) - {"device", "dtype", "tensor", "non_blocking", "copy", "memory_format"}
        if unknown:
            raise ArgumentError(f"Module.to has no argument {sorted(unknown)[0]!r}")
        if dtype is not None and as_dtype(dtype).category < 2:
            raise ArgumentError(f"Module.to takes floating point or complex dtypes, got {dtype}")

        def change(tensor: Tensor) -> Tensor:
            wanted = dtype if dtype is not None and tensor.dtype.category >= 2 else None
            return tensor.to(device=device, dtype=wanted)

        return self._apply(change)

    def cpu(self) -> Self:
        """Move everything to the CPU."""
        return self.to("cpu")

    def type(self, dtype: Any) -> Self:
        """Convert floating point parameters and buffers to a dtype."""
        return self.to(dtype)

    def float(self) -> Self:
        """Convert floating point parameters and buffers to float32."""
        return self.to(tp.float32)

    def double(self) -> Self:
        """Convert floating point parameters and buffers to float64."""
        return self.to(tp.float64)

    def half(self) -> Self:
        """Convert floating point parameters and buffers to float16."""
        return self.to(tp.float16)

    def bfloat16(self) -> Self:
        """Convert floating point parameters and buffers to bfloat16."""
        return self.to(tp.bfloat16)

    def train(self, mode: bool = True) -> Self:
        """Training mode (dropout on) for this module and all below."""
        if not isinstance(mode, bool):
            raise ArgumentError(f"train takes a bool, got {mode!r}")
        for module in self.modules():
            module.__dict__["training"] = mode
        return self

    def eval(self) -> Self:
        """Evaluation mode."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Ask for gradients of all parameters, or stop asking."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients (or set them to zero)."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad.detach_().zero_()

    def share_memory(self) -> Self:
        """Refused: tensors are not shared between processes."""
        from tensorplay.library import NotSupported

        raise NotSupported("share_memory: tensors are not shared between processes; send a state_dict instead")

    # ---- state ------------------------------------------------------------------------------------------------------
    def state_dict(self, *, destination: dict | None = None, prefix: str = "", keep_vars: bool = False) -> dict:
        """All parameters and persistent buffers by dotted name, sharing memory with the module."""
        from .state import collect_state

        return collect_state(self, {} if destination is None else destination, prefix, keep_vars)

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Copy a state_dict's tensors into this module.

        Raises ValueError naming missing, unexpected (with rename suggestions) and wrongly shaped entries; then nothing
        has been changed.
        """
        from .state import load_state

        return load_state(self, state_dict, strict, assign)

    # ---- hooks ------------------------------------------------------------------------------------------------------
    def _hook_set(self) -> HookSet:
        if self._hooks is None:
            self.__dict__["_hooks"] = HookSet()
        return self._hooks

    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False) -> Any:
        """Call `hook(module, args)` before forward; a result replaces the arguments."""
        return self._hook_set().add("forward_pre", hook, prepend, with_kwargs)

    def register_forward_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> Any:
        """Call `hook(module, args, output)` after forward; a result replaces the output. With `always_call` the hook
        also runs, with output None, when forward fails."""
        return self._hook_set().add("forward", hook, prepend, with_kwargs, always_call)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> Any:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the module's inputs are known (None for an
        argument that has none); a result replaces grad_input."""
        return self._hook_set().add("backward", hook, prepend, False)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> Any:
        """Call `hook(module, grad_output)` before the module's backward; a result replaces grad_output."""
        return self._hook_set().add("backward_pre", hook, prepend, False)

    # ---- text -------------------------------------------------------------------------------------------------------
    def extra_repr(self) -> str:
        """What a layer says about itself between the brackets of its repr."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        from .text import module_repr

        return module_repr(self)

    def __str__(self) -> str:
        from .text import architecture

        return architecture(self)

    def __dir__(self) -> list[str]:
        return sorted(set(object.__dir__(self)) | set(self._parameters) | set(self._buffers) | set(self._modules))


def place_in_path(module: Module, error: TensorPlayError) -> None:
    """Note the module's name on an error that leaves it: the caller knows the name, so it is filled in one level up."""
    inner = error.__dict__.get("innermost")
    if inner is not None and inner is not module:
        name = next((path for path, found in module.named_modules() if found is inner), "")
        if name:
            error.modules.append(name)
    error.innermost = module  # type: ignore[attr-defined]
