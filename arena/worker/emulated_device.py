"""PyTorch's operators on the CPU platform's device memory: what allocates, fills and copies works, as on a GPU."""

from __future__ import annotations

import ctypes
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from arena.platforms.cpu.triton import device_memory
from arena.worker.emulated_queries import answer_queries
from arena.worker.metadata import mapped

if TYPE_CHECKING:
    import torch

_TOUCHING = ("fill_.Scalar", "fill_.Tensor", "zero_", "_local_scalar_dense")
_ARANGE = "arange.start_out"
_STRIDED = "empty_strided"
_NAMED = ("empty.memory_format", _STRIDED)
"""what makes tensors where `device="cuda"` is asked for"""
_MAKERS = ("tensor", "as_tensor", "asarray", "from_numpy", "scalar_tensor")
_READERS = ("numpy", "tolist", "__array__", "__dlpack__")


class EmulatedDevice:
    """From here on, new tensors lie in device memory, out of the reach of this process's Python and NumPy."""

    def __init__(self, allow_copy: Callable[[torch.Tensor], None], computing: Mapping[str, Any]) -> None:
        """`allow_copy` raises where PyTorch may not copy into a tensor; `computing`: what `compute` may call."""
        import torch

        self._allow_copy = allow_copy
        self._on_the_host = 0
        get_kernel = getattr(torch.library, "get_kernel", None)
        self._keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
        names = (*_TOUCHING, _ARANGE, "copy_", _STRIDED)
        self._own = {name: get_kernel(f"aten::{name}", "CPU") for name in names} if get_kernel else {}
        self._own.update(computing)
        self._register()
        self._replace_constructors()
        answer_queries()
        device_memory.explain_faults()

    def _register(self) -> None:
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of operators that are registered a second time
            making: dict[str, Callable[..., Any]] = {
                "empty.memory_format": self._empty,
                _STRIDED: self._empty_strided,
                _ARANGE: self._arange,
            }
            touching: dict[str, Callable[..., Any]] = {
                "copy_": self._copy,
                **{name: self._touching(name) for name in _TOUCHING},
            }
            if not self._own:
                self._library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
            named = {name: making[name] for name in _NAMED}
            for key, functions in (("CPU", {**making, **touching}), ("CUDA", named)):
                if self._own:
                    library = torch._C._dispatch_library("IMPL", "aten", key, __file__, 0)
                    # When the last reference goes, so do the replacements: there shall be none that can be found.
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
                for name, function in functions.items():
                    if self._own:
                        library.impl(name, key, function)
                    else:
                        self._library.impl(name, function, key)  # type: ignore[no-untyped-call]

    def _empty(self, size: Any, *, dtype: Any = None, memory_format: Any = None, **_: Any) -> torch.Tensor:
        return self._empty_strided(size, _contiguous(size, memory_format), dtype=dtype)

    def _empty_strided(self, size: Any, stride: Any, *, dtype: Any = None, **_: Any) -> torch.Tensor:
        import torch

        dtype = dtype or torch.get_default_dtype()
        if self._on_the_host and self._own:
            made: torch.Tensor = self._own[_STRIDED].call_boxed(self._keys, size, stride, dtype=dtype)  # that can grow
            return made
        span = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if 0 not in size else 1
        num_bytes = int(span) * dtype.itemsize
        if self._on_the_host:
            flat = torch.frombuffer(bytearray(num_bytes), dtype=dtype)
        else:
            flat = device_memory.allocate(num_bytes, dtype)
        return flat.as_strided(size, stride, 0)

    def _arange(self, start: Any, end: Any, step: Any = 1, *, out: torch.Tensor) -> torch.Tensor:
        """PyTorch hands over a tensor without elements, and has it grow."""
        import torch

        with self.on_the_host():
            made = torch.empty(max(0, math.ceil((end - start) / step)), dtype=out.dtype)
        self._really(_ARANGE, start, end, step, out=made)
        copied = made if self._on_the_host else made.clone()
        out.set_(copied.untyped_storage(), 0, copied.shape, copied.stride())
        return out

    def _touching(self, name: str) -> Callable[..., Any]:
        def touch(*args: Any, **kwargs: Any) -> Any:
            import torch

            if name == "_local_scalar_dense" and device_memory.find(args[0].data_ptr()) is not None:
                device_memory.count_to_host(args[0].element_size())
            result = self._really(name, *map(_reached, args), **kwargs)
            return args[0] if isinstance(result, torch.Tensor) else result

        return touch

    def _copy(self, into: torch.Tensor, source: torch.Tensor | int, non_blocking: bool = False) -> torch.Tensor:
        import torch

        if not isinstance(source, torch.Tensor):  # a number that PyTorch compares with
            return into.fill_(source)
        if _same(into, source):
            return into
        self._allow_copy(into)
        if device_memory.find(source.data_ptr()) is not None and device_memory.find(into.data_ptr()) is None:
            device_memory.count_to_host(source.numel() * source.element_size())
        self._really("copy_", _reached(into), _reached(source), non_blocking)
        return into

    def compute(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call an operator of PyTorch's own on tensors wherever they are, and put new results into device memory."""
        import torch

        reached = mapped(_reached, (args, kwargs))
        result = self._really(name, *reached[0], **reached[1])
        given = kwargs.get("out", args[0] if name.partition(".")[0].endswith("_") else None)
        if given is not None or self._on_the_host:
            return result if given is None else given
        return mapped(lambda each: each.clone() if isinstance(each, torch.Tensor) else each, result)

    def _really(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """PyTorch's own implementation."""
        import torch

        with self.on_the_host():
            if self._own:
                return self._own[name].call_boxed(self._keys, *args, **kwargs)
            # Older versions of PyTorch have no way to it but to put it back for the moment.
            self._library._destroy()  # type: ignore[no-untyped-call]
            try:
                operator, _, overload = name.partition(".")
                return getattr(getattr(torch.ops.aten, operator), overload or "default")(*args, **kwargs)
            finally:
                self._register()

    @contextmanager
    def on_the_host(self) -> Iterator[None]:
        """Meanwhile tensors are allocated in the host's memory."""
        self._on_the_host += 1
        try:
            yield
        finally:
            self._on_the_host -= 1

    def _replace_constructors(self) -> None:
        """Have PyTorch build on the host what it builds element by element, and copy it; read so the other way."""
        import torch

        for owner, names in ((torch, _MAKERS), (torch.Tensor, ("new_tensor",)), (torch.nested, ("nested_tensor",))):
            for name in names:
                setattr(owner, name, self._maker(getattr(owner, name)))
        for name in _READERS:
            setattr(torch.Tensor, name, self._reader(getattr(torch.Tensor, name)))

    def _maker(self, original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def make(*args: Any, **kwargs: Any) -> torch.Tensor:
            import torch

            if original.__name__ != "from_numpy" and torch.device(kwargs.get("device") or "cuda").type == "cuda":
                kwargs["device"] = "cpu"
            with self.on_the_host():
                made = original(*args, **kwargs)
            return made.clone() if device_memory.find(made.data_ptr()) is None else made

        return make

    def _reader(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def read(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if device_memory.find(tensor.data_ptr()) is None:
                return original(tensor, *args, **kwargs)
            with self.on_the_host():
                return original(tensor.clone(), *args, **kwargs)

        return read


def _reached(value: Any) -> Any:
    import torch

    return device_memory.in_reach(value) if isinstance(value, torch.Tensor) else value


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return (one.data_ptr(), one.dtype, one.shape, one.stride()) == (
        other.data_ptr(),
        other.dtype,
        other.shape,
        other.stride(),
    )


def _contiguous(size: Any, memory_format: Any) -> tuple[int, ...]:
    """Strides of a new tensor; the last dimension is the densest, but in the formats that put channels there."""
    import torch

    order = list(range(len(size)))
    if memory_format in (torch.channels_last, torch.channels_last_3d):
        order = [0, *range(2, len(size)), 1]
    strides, step = [0] * len(size), 1
    for dimension in reversed(order):
        strides[dimension] = step
        step *= max(1, int(size[dimension]))
    return tuple(strides)
