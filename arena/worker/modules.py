"""Find what to call in a file of Python: the entry function of the task, or a module, `ModelNew` or else `Model`.

`loaders.py` loads the file; the two classes here make a call of set `k` from what is bound. They hold no verdict.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from arena.processes.protocol import Load, ModuleCall, TensorArgument
from arena.results.messages import message
from arena.task.declaration import MODULE_CLASSES
from arena.worker.binding import Binding
from arena.worker.operators import breaks_a_rule

if TYPE_CHECKING:
    import torch

    from arena.worker.allocations import Allocations

_SIGNATURE_CHARACTERS = 1000


class LoadError(Exception):
    """The file is there, but it is not a candidate."""


class WrongTensors(Exception):
    """A module returned something else than the outputs."""


class Callee(Protocol):
    """The function or module under evaluation, with the sets of arguments that are bound."""

    def bind(self, binding: Binding | None) -> None:
        """Take the arguments of every set; None forgets them."""

    def load_constants(self) -> None:
        """Construct what is kept for the case, from the constants in the buffer."""

    def call(self, index: int) -> None:
        """Issue one call on set `index`."""


def callee(module: ModuleType, message: Load, file: str) -> Callee:
    """Return the entry function, or the class of a module where the task takes one. Raises `LoadError`."""
    function = getattr(module, message.entry, None)
    if callable(function):
        return _Function(function, message.entry)
    if message.modules:
        for name in MODULE_CLASSES:
            found = getattr(module, name, None)
            if isinstance(found, type):
                return _Modules(found)
    others = f", and no class {' or '.join(MODULE_CLASSES)}" if message.modules else ""
    raise LoadError(f"{file} defines no function `{message.entry}`{others}")


class _Function:
    """The entry function, which is given its outputs."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function, self._name = function, name
        self._values: list[list[object]] = []

    def bind(self, binding: Binding | None) -> None:
        """Keep the argument lists."""
        if binding is not None:
            self._require_signature([argument.name for argument in binding.message.arguments])
        self._values = [] if binding is None else binding.values

    def _require_signature(self, names: Sequence[str]) -> None:
        """Raise `LoadError` where the function cannot be called with so many arguments by position."""
        try:
            found = inspect.signature(self._function)
        except (TypeError, ValueError):
            return  # what it takes is not known
        try:
            found.bind(*names)
        except TypeError:
            own = inspect.signature(self._function).replace(return_annotation=inspect.Signature.empty)
            expected = f"expected def {self._name}({', '.join(names)}), with arguments by position"
            signatures = f"{expected}\nfound    def {self._name}{own}"[:_SIGNATURE_CHARACTERS]
            raise LoadError(message("wrong_signature", signatures=signatures)) from None

    def load_constants(self) -> None:
        """A function is given them in every call."""

    def call(self, index: int) -> None:
        """Call the function; what it returns is ignored."""
        self._function(*self._values[index])


class _Modules:
    """One module for each set, each with copies of the constants of its own, as the arguments of a function are.

    Where all sets have their constants in the same memory, one module serves them all. A call is `forward`, and a copy
    of what it returns into the outputs.
    """

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self._sets: list[dict[str, Any]] = []
        self._how: ModuleCall | None = None
        self._modules: list[Any] = []
        self._at_one_place = False

    def bind(self, binding: Binding | None) -> None:
        """Keep the arguments of every set by name, and forget the modules of the case before."""
        self._sets, self._how, self._modules = [], None, []
        if binding is None:
            return
        names = [argument.name for argument in binding.message.arguments]
        self._sets = [dict(zip(names, values, strict=True)) for values in binding.values]
        self._how = how = binding.message.module
        constants = frozenset() if how is None else frozenset(how.state.values())
        placed = [one for one in binding.message.arguments if isinstance(one, TensorArgument)]
        pitches = [one.pitch for one in placed if one.name in constants]
        self._at_one_place = bool(pitches) and not any(pitches)

    def load_constants(self) -> None:
        """Construct a module, copy it for every set, and load the constants into each."""
        how = self._case
        states = [{name: values[given] for name, given in how.state.items()} for values in self._sets]
        first, own_names = constructed(self._kind, how, states[0], _device(self._sets[0].values()))
        kept = [first] if self._at_one_place else [first, *(copy.deepcopy(first) for _ in states[1:])]
        for module, state in zip(kept, states, strict=False):
            load_state(module, {own_names[name]: tensor for name, tensor in state.items()})
        self._modules = [kept[index % len(kept)] for index in range(len(states))]

    def call(self, index: int) -> None:
        """Call `forward`, and copy what it returns into the outputs."""
        import torch

        if not self._modules:  # of a case that is compiled, and not checked
            self.load_constants()
        how, values = self._case, self._sets[index]
        with torch.no_grad():
            returned = self._modules[index](*(values[name] for name in how.forward))
            results = returned if isinstance(returned, tuple | list) else (returned,)
            if len(results) != len(how.results):
                raise WrongTensors(_other(f"{len(results)} results", f"{len(how.results)}: {', '.join(how.results)}"))
            for name, result in zip(how.results, results, strict=True):
                _require_like(name, result, values[name])
                values[name].copy_(result)

    @property
    def _case(self) -> ModuleCall:
        if self._how is None:
            raise RuntimeError("no case is bound")
        return self._how


def _device(values: Iterable[object]) -> torch.device:
    """Return the device of the arguments, which all lie in one buffer."""
    import torch

    return next(value.device for value in values if isinstance(value, torch.Tensor))


def constructed(
    kind: type, how: ModuleCall, state: Mapping[str, torch.Tensor], device: torch.device
) -> tuple[torch.nn.Module, dict[str, str]]:
    """Construct a module on the device of its arguments.

    Constructors draw and scale weights, which the state replaces. So a constructor runs on the meta device, which
    computes nothing, and buffers that are only allocated are made again. One that needs what it computes runs for real,
    as far as PyTorch may compute there.

    Args:
        kind: the candidate's class.
        how: what the constructor takes, and which of its tensors are 0.
        state: the constants by their names in the `state_dict`.
        device: where its parameters and buffers shall lie, also where it has no constants.

    Returns:
        The module, and its own name for each constant.

    Raises:
        LoadError: it is no module, or has a tensor that nothing but its constructor fills.
    """
    import torch

    from arena.worker.allocations import Allocations

    allocations = Allocations()

    def without_memory() -> Any:
        with torch.device("meta"), allocations:
            return kind(*how.init)

    def completed(construct: Callable[[], Any]) -> tuple[torch.nn.Module, dict[str, str]]:
        module = construct()
        if not isinstance(module, torch.nn.Module):
            raise LoadError(f"{kind.__name__} is no torch.nn.Module")
        own_names = _complete(module, how, state, device, allocations)
        return module.to(device), own_names

    try:
        return completed(without_memory)
    except Exception as problem:  # whatever a constructor raises that misses its values
        refused = problem if isinstance(problem, LoadError) else None
    try:
        return completed(lambda: kind(*how.init))
    except Exception as problem:
        if refused is None or not breaks_a_rule(problem):
            raise
    raise refused


def _complete(
    module: torch.nn.Module,
    how: ModuleCall,
    state: Mapping[str, torch.Tensor],
    device: torch.device,
    allocations: Allocations,
) -> dict[str, str]:
    """Give memory to each tensor of a module, and return its own names of constants. Raises `LoadError`."""
    import torch

    kind, own_names = type(module).__name__, _own_names(module, state, how.zeros)
    for name, tensor in state.items():
        _place(module, own_names[name], torch.empty_like(tensor))
    for name, parameter in list(module.named_parameters()):
        if name in how.zeros:
            _place(module, name, torch.zeros(parameter.shape, dtype=parameter.dtype, device=device))
        elif name not in own_names.values():
            raise LoadError(f"{kind}.{name} is a parameter that the task does not give: {', '.join(state)}")
    for name, buffer in list(module.named_buffers()):
        if not buffer.is_meta:
            continue
        again = allocations.again(buffer, device)
        if again is None:
            raise LoadError(f"{kind}.{name} is computed by PyTorch in the constructor, and is no constant")
        _place(module, name, again)
    for part in module.modules():
        for name, value in vars(part).items():
            if name not in ("_parameters", "_buffers", "_modules") and _holds_meta(value):
                raise LoadError(f"{kind}.{name} holds a tensor of the constructor's that is no buffer")
    return own_names


def _holds_meta(value: object) -> bool:
    """Return whether a tensor without memory is among a value and what collections in it hold."""
    import torch

    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple | set):
        return any(_holds_meta(each) for each in value)
    return isinstance(value, torch.Tensor) and value.is_meta


def _own_names(module: torch.nn.Module, state: Mapping[str, torch.Tensor], zeros: Sequence[str]) -> dict[str, str]:
    """Return the module's name of each constant: the same, else that of the parameter in the same place.

    KernelBench seeds both modules alike, so that parameters of the same shapes in the same order are equal there.
    """
    parameters = [(name, one) for name, one in module.named_parameters() if name not in zeros]
    known = {name for name, _ in (*parameters, *module.named_buffers())}
    in_order = [tuple(one.shape) for _, one in parameters] == [tuple(one.shape) for one in state.values()]
    if not known.issuperset(state) and in_order:
        return dict(zip(state, (name for name, _ in parameters), strict=True))
    return {name: name for name in state}


def load_state(module: torch.nn.Module, state: Mapping[str, torch.Tensor]) -> None:
    """Copy the constants into a module, in their own dtypes; buffers that are none keep what they have."""
    import torch

    with torch.no_grad():
        module.load_state_dict(dict(state), strict=False)


def _place(module: torch.nn.Module, name: str, tensor: torch.Tensor) -> None:
    """Put memory in the dtype of a constant where the module has a parameter or a buffer of this name."""
    import torch

    kind, shape = type(module).__name__, list(tensor.shape)
    found = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    if name not in found:
        raise LoadError(
            f"{kind} has no parameter or buffer `{name}` of shape {shape}, but {', '.join(found) or 'none'}"
        )
    if list(found[name].shape) != shape:
        raise LoadError(f"{kind}.{name} has shape {list(found[name].shape)}; the task gives {shape}")
    path, _, leaf = name.rpartition(".")
    owner = module.get_submodule(path)
    if leaf in owner._parameters:
        owner._parameters[leaf] = torch.nn.Parameter(tensor, requires_grad=False)
    else:
        owner._buffers[leaf] = tensor


def _require_like(name: str, result: object, output: torch.Tensor) -> None:
    import torch

    expected = f"{name}, {_of(output)}"
    if type(result) not in (torch.Tensor, torch.nn.Parameter):
        raise WrongTensors(_other(type(result).__name__, expected))
    assert isinstance(result, torch.Tensor)
    if (result.shape, result.dtype, result.device) != (output.shape, output.dtype, output.device):
        raise WrongTensors(_other(_of(result), expected))


def _other(found: str, expected: str) -> str:
    return message("returns_other_tensors", found=found, expected=expected)


def _of(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)} on {tensor.device.type}"
