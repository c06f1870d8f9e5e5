"""Record the calls of one function in a running program: shapes, dtypes, strides, scalars, and how often."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import structs

from arena.errors import UsageError
from arena.task.corpus.captured_calls import CallsAlike, CapturedCalls, OtherSeen, ScalarSeen, Seen, TensorSeen

if TYPE_CHECKING:
    import torch

_MOST_ITEMS = 64
"""of a list or tuple that is passed"""
_SCALARS = (bool, int, float, str)
_MOST_BYTES = 1 << 30
"""of a tensor whose contents are compared before and after a call"""
Kind = tuple[tuple[str, Seen], ...]
"""the arguments of calls that are alike"""


class CallRecorder:
    """Counts calls that are alike. Safe among threads; what runs in other processes is not seen."""

    def __init__(self, function: str) -> None:
        self._function = function
        self._counts: dict[tuple[Kind, tuple[Seen, ...]], int] = {}
        self._changed: dict[Kind, frozenset[str]] = {}
        self._devices: dict[str, None] = {}
        self._lock = threading.Lock()

    def calls(self) -> CapturedCalls:
        """Return what was recorded so far. Raises `UsageError` where nothing was."""
        import torch

        with self._lock:
            counts, devices = sorted(self._counts.items(), key=lambda item: -item[1]), ", ".join(self._devices)
        if not counts:
            raise UsageError(
                f"{self._function} was not called in this process: name it as `package.module:function`, by the "
                "module that defines it, which is not the program itself, and run eagerly in one process"
            )
        alike = tuple(CallsAlike(calls, self._marked(kind), results) for (kind, results), calls in counts)
        return CapturedCalls(self._function, devices or "none", str(torch.__version__), alike)

    def around(
        self, call: Callable[..., Any], names: Sequence[str], *, skipped: int = 0, launch: bool = False
    ) -> Callable[..., Any]:
        """Return a function that calls `call` and records it.

        Args:
            call: What is called in the end.
            names: Of its positional arguments.
            skipped: How many of these are not recorded, such as `self`.
            launch: Whether it launches a Triton kernel: only what has one of these names is recorded.
        """
        parameters = {} if launch else _parameters(call)
        unsaid = {name: one for name, one in parameters.items() if one.default is not one.empty}
        order = {name: number for number, name in enumerate(parameters)}

        @functools.wraps(call)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            import torch

            if torch.compiler.is_compiling() or (launch and kwargs.get("warmup")):
                return call(*args, **kwargs)
            all_names = [*names, *(f"arg{number}" for number in range(len(names), len(args)))]
            known = {**dict(zip(all_names[skipped:], args[skipped:], strict=False)), **kwargs}
            known |= {name: one.default for name, one in unsaid.items() if name not in known}
            known = dict(sorted(known.items(), key=lambda item: order.get(item[0], len(order))))
            given = dict(_flat({name: value for name, value in known.items() if not launch or name in names}))
            kind = tuple((name, _seen(value)) for name, value in given.items())
            before = {} if kind in self._changed else _contents(given)
            result = call(*args, **kwargs)
            results = () if result is None else tuple(_seen(value) for _, value in _flat({"": result}))
            changed = frozenset(name for name, held in before.items() if not _same(given[name], held))
            device = next((_device(value) for value in given.values() if _is_tensor(value)), "")
            with self._lock:
                self._changed.setdefault(kind, changed)
                self._counts[kind, results] = self._counts.get((kind, results), 0) + 1
                self._devices |= {device: None} if device else {}
            return result

        return recorded

    def _marked(self, kind: Kind) -> dict[str, Seen]:
        """Return the arguments, with what the first of these calls changed."""
        changed = self._changed[kind]
        return {
            name: structs.replace(value, mutated=name in changed) if isinstance(value, TensorSeen) else value
            for name, value in kind
        }


@contextmanager
def capture(target: str) -> Iterator[CallRecorder]:
    """Record every call of a function in this process, until the block ends.

    A Triton kernel is recorded at its launches, with the names of its parameters. The function is replaced in its
    module, and wherever another module has imported it by name; both are undone. Under `torch.compile` and in replays
    of a graph nothing is called, so run eagerly.

    Args:
        target: `package.module:function` or `package.module:Class.method`.

    Yields:
        The recorder; its `calls().write("capture.json")` is what `arena tasks new --from capture.json` reads.

    Raises:
        UsageError: the function is not there, or is none. `calls` raises it where there was no call.

    Examples:
        >>> from arena.api.capture import capture
        >>> with capture("torch.nn.functional:gelu") as recorder:  # doctest: +SKIP
        ...     model(batch)
        >>> recorder.calls().write("capture.json")  # doctest: +SKIP
    """
    owner, name, original = _found(target)
    recorder = CallRecorder(target)
    if hasattr(original, "run") and hasattr(original, "arg_names"):
        recorded: object = recorder.around(original.run, original.arg_names, launch=True)
        places = [(original, "run")]
    else:
        kept = inspect.getattr_static(owner, name)
        plain = kept.__func__ if isinstance(kept, staticmethod | classmethod) else kept
        bound = inspect.isclass(owner) and not isinstance(kept, staticmethod)
        recorded = recorder.around(plain, _positional(plain), skipped=int(bound))
        recorded = type(kept)(recorded) if isinstance(kept, staticmethod | classmethod) else recorded
        places = [(owner, name)] if inspect.isclass(owner) else _holders(original)
    with _replaced(places, recorded):
        yield recorder


def _found(target: str) -> tuple[object, str, Any]:
    """Return what holds the function, its name there, and the function."""
    module, _, path = target.partition(":")
    if module == "__main__":
        raise UsageError(f"{target}: what the program itself defines is there too late: move it to a module")
    if not module or not path:
        raise UsageError(f"{target!r} names no function: write `package.module:function`")
    try:
        owner: object = importlib.import_module(module)
    except ImportError as problem:
        hint = "name the folder that it is in by PYTHONPATH"
        raise UsageError(f"{target}: {module} cannot be imported: {problem}; {hint}") from None
    *outer, name = path.split(".")
    try:
        for part in outer:
            owner = getattr(owner, part)
        original = getattr(owner, name)
    except AttributeError as problem:
        raise UsageError(f"{target}: {problem}") from None
    if inspect.isclass(original):
        raise UsageError(f"{target} is a class: name one of its methods, such as {target}.forward")
    if not callable(original) and not hasattr(original, "run"):
        raise UsageError(f"{target} is a {type(original).__name__}, and no function or Triton kernel")
    return owner, name, original


def _holders(original: object) -> list[tuple[object, str]]:
    """Return the loaded modules that hold a function, with its name there."""
    modules = [module for module in list(sys.modules.values()) if module is not None]
    return [
        (module, name)
        for module in modules
        for name, value in list(getattr(module, "__dict__", {}).items())
        if value is original
    ]


@contextmanager
def _replaced(places: Sequence[tuple[object, str]], value: object) -> Iterator[None]:
    missing = object()
    before = [vars(owner).get(name, missing) for owner, name in places]
    for owner, name in places:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for (owner, name), old in zip(places, before, strict=True):
            if old is missing:
                delattr(owner, name)
            else:
                setattr(owner, name, old)


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return its parameters by name; none where Python cannot tell, as of a function in C."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def _positional(function: Callable[..., Any]) -> list[str]:
    """Return the names of what may be passed by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [name for name, one in _parameters(function).items() if one.kind in kinds]


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield arguments with the items of lists and tuples one by one, as `name.0`, `name.1`."""
    for name, value in values.items():
        if isinstance(value, list | tuple) and len(value) <= _MOST_ITEMS:
            yield from _flat({f"{name}.{number}": item for number, item in enumerate(value)})
        else:
            yield name, value


def _is_tensor(value: object) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _contents(given: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Return copies of tensors that are not too large; none while a CUDA graph is captured, which allows no copy."""
    import torch

    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        return {}
    held = {name: value.detach() for name, value in given.items() if _is_tensor(value)}
    return {name: value.clone() for name, value in held.items() if value.numel() * value.element_size() <= _MOST_BYTES}


def _same(now: torch.Tensor, before: torch.Tensor) -> bool:
    """Return whether a tensor holds the same bytes, NaN among them."""
    import torch

    both = (now.detach().contiguous(), before.contiguous())
    return torch.equal(*(value.reshape(-1).view(torch.uint8) for value in both))


def _device(value: torch.Tensor) -> str:
    import torch

    if value.device.type == "cuda":
        return torch.cuda.get_device_name(value.device)
    return value.device.type


def _seen(value: Any) -> Seen:
    if _is_tensor(value):
        import torch

        strided = value.layout == torch.strided
        strides = tuple(value.stride()) if strided and not value.is_contiguous() else None
        offset = value.storage_offset() if strided else 0
        return TensorSeen(tuple(value.shape), str(value.dtype).removeprefix("torch."), strides, offset)
    if value is None or isinstance(value, _SCALARS):
        return ScalarSeen(value)
    return OtherSeen(type(value).__qualname__)
