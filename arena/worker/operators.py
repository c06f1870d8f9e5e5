"""PyTorch in the process of a Triton candidate: memory, views and copies work, whatever computes is refused.

A kernel that PyTorch computes is no Triton kernel, and a right answer in the right place would not show it. So the
operators themselves are replaced at PyTorch's dispatcher, for the device in question, for good, and for every thread,
graph capture and library in the process: there is no observer that a candidate could wait for to stop, and no
object by which the replacement could be taken back. Only the guard on copies has one: it steps aside for each of them.
"""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arena.package import PACKAGE, resource
from arena.results.messages import message
from arena.worker.metadata import MOST_IN_A_CALL, elements, may_compute_metadata, with_tensors

if TYPE_CHECKING:
    import torch

ALLOWED = frozenset(
    {
        *("empty", "empty_strided", "arange", "fill_", "zero_", "resize_", "set_"),
        *("as_strided", "view", "view_as_real", "view_as_complex", "unfold", "_reshape_alias"),
        *("_local_scalar_dense", "record_stream", "is_set_to", "_pin_memory", "is_pinned"),
    }
)
"""Names at the dispatcher, without overloads, that compute nothing. Most other harmless ones are made of these."""
_COPY = "copy_"
_KINDS = ("", "Sparse", "SparseCsr", "Quantized", "Mkldnn", "NestedTensor")
"""What the dispatcher puts before a device's name; dense tensors have nothing there."""


class RuleViolation(Exception):
    """The candidate did what the rules forbid."""


def breaks_a_rule(problem: BaseException | None) -> bool:
    """Return whether a broken rule is among the causes of an exception, which a candidate may have caught."""
    while problem is not None:
        if isinstance(problem, RuleViolation) or type(problem).__name__ == "HostAccess":
            return True
        problem = problem.__cause__ or problem.__context__
    return False


class Operators:
    """The operators of one device, restricted from here on."""

    def __init__(self, device: str, *, metadata: bool = False) -> None:
        """`device` is PyTorch's word for it: cpu, or cuda, ROCm's devices among them.

        `metadata`: PyTorch may compute with few integers (`metadata.py`), if its version can call what was replaced.
        """
        import torch

        os.environ["TORCH_COMPILE_DISABLE"] = "1"  # what it would generate is PyTorch's kernel, not the candidate's
        self._arguments = (0, 0)
        self._elements = 0
        self._key = device.upper()
        get_kernel = getattr(torch.library, "get_kernel", None) if metadata else None
        kernels: dict[str, Any] = {}
        with _quietly():
            for (namespace, key), operators in computing(device).items():
                library = torch._C._dispatch_library("IMPL", namespace, key, __file__, 0)
                for operator in operators:
                    name = f"{namespace}::{operator}"
                    if get_kernel and (namespace, key) == ("aten", self._key) and may_compute_metadata(operator):
                        kernels[operator] = get_kernel(name, key)
                        library.impl(operator, key, self._on_metadata(operator, _refusal(name)))
                    else:
                        library.impl(operator, key, _refusal(name))
                # When the last reference goes, so do the replacements: there shall be none that can be found.
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
        self._call = self._emulated(kernels) if device == "cpu" else self._on_device(kernels)
        if device != "cpu":
            self._watch_copies()

    def _emulated(self, kernels: dict[str, Any]) -> Callable[..., Any]:
        """Put device memory out of the worker's reach, where kernels are interpreted."""
        from arena.worker.emulated_device import EmulatedDevice

        return EmulatedDevice(self._allow_copy, kernels).compute

    def _on_device(self, kernels: dict[str, Any]) -> Callable[..., Any]:
        import torch

        keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, self._key))
        return lambda operator, *args, **kwargs: kernels[operator].call_boxed(keys, *args, **kwargs)

    def _on_metadata(self, operator: str, refuse: Callable[..., Any]) -> Callable[..., Any]:
        def compute(*args: Any, **kwargs: Any) -> Any:
            given = elements(args, kwargs)
            self._elements += given or 0
            if given is None or self._elements > MOST_IN_A_CALL:
                refuse()
            result = self._call(operator, *with_tensors(operator, args), **kwargs)
            if elements(result) is None:
                refuse()
            return result

        return compute

    def begin_call(self) -> None:
        """Count the elements of metadata anew."""
        self._elements = 0

    def protect(self, first: int, num_bytes: int) -> None:
        """Refuse copies to these addresses: the arguments are for kernels to write."""
        self._arguments = (first, first + num_bytes)

    def _watch_copies(self) -> None:
        import torch

        with _quietly():
            self._copies = torch.library.Library("aten", "IMPL", self._key)  # type: ignore[no-untyped-call]
            self._copies.impl(_COPY, self._copy)  # type: ignore[no-untyped-call]

    def _copy(self, into: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
        """`copy_`, but into the arguments on behalf of Triton or the worker only."""
        self._allow_copy(into)
        # There is no way to PyTorch's own implementation but to put it back for the moment.
        self._copies._destroy()  # type: ignore[no-untyped-call]
        try:
            return into.copy_(source, non_blocking)
        finally:
            self._watch_copies()

    def _allow_copy(self, into: torch.Tensor) -> None:
        first, end = self._arguments
        if first <= into.data_ptr() < end and not _is_ours(_caller()):
            raise RuleViolation(message("pytorch_copies_to_output"))


@cache
def computing(device: str) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Operators that compute, by namespace and by key of the dispatcher. To be asked for once, ahead of forking."""
    import torch

    has = torch._C._dispatch_has_kernel_for_dispatch_key
    names = [name for name in torch._C._dispatch_get_all_op_names() if not name.startswith("c10d::")]
    found: dict[tuple[str, str], list[str]] = {}
    for key in (kind + device.upper() for kind in _KINDS if hasattr(torch._C.DispatchKey, kind + device.upper())):
        for namespace, _, operator in (name.partition("::") for name in names if has(name, key)):
            if operator.partition(".")[0] not in ALLOWED | {_COPY}:
                found.setdefault((namespace, key), []).append(operator)
    return {place: tuple(operators) for place, operators in found.items()}


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(*_args: Any, **_kwargs: Any) -> Any:
        raise RuleViolation(message("pytorch_computes", operator=name))

    return refuse


@contextmanager
def _quietly() -> Iterator[None]:
    """PyTorch warns of operators that are registered a second time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _caller() -> str:
    """The file of whoever called into PyTorch."""
    import torch

    inside = (str(Path(torch.__file__).parent), __file__, str(Path(__file__).with_name("emulated_device.py")))
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(inside):
        frame = frame.f_back  # type: ignore[assignment]
    return frame.f_code.co_filename if frame is not None else ""


def _is_ours(file: str) -> bool:
    import triton

    path = Path(file)
    ours = path.is_relative_to(PACKAGE) and not path.is_relative_to(resource("tasks"))
    return ours or path.is_relative_to(Path(triton.__file__).parent)
