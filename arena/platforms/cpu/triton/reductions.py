"""Reductions and scans over whole slices: a tree of log2(n) calls of the combine function, in the element's type.

Compiled Triton combines in the element's own type too: on an H200, `tl.sum` of 256 bfloat16 numbers near 1.5 came
out as 384 instead of 382.8. Callers that want fp32 sums say `tl.sum(x.to(tl.float32))`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from arena.platforms.cpu.triton.formats import is_float
from arena.platforms.cpu.triton.internals import Array, Internals

Combine = Callable[[Sequence[Array], Sequence[Array]], list[Array]]
Reduction = Callable[[Sequence[Array], int], list[Array]]


def tree_sum(data: Array, axis: int) -> Array:
    """Sum along `axis` by halves, rounding each partial sum to the element's type; integers wrap."""
    if not is_float(data.dtype):
        return np.asarray(np.sum(data, axis=axis, dtype=data.dtype))
    data = np.moveaxis(data, axis, 0)
    while len(data) > 1:
        half = len(data) // 2
        head = data[:half] + data[half : 2 * half]
        data = np.concatenate([head, data[2 * half :]]) if len(data) % 2 else head
    return np.asarray(data[0])


def tree_reduce(arrays: Sequence[Array], axis: int, combine: Combine) -> list[Array]:
    """Reduce arrays of one shape along `axis`, a power of two long, combining neighbours: order is kept."""
    moved = [np.moveaxis(array, axis, 0) for array in arrays]
    while len(moved[0]) > 1:
        moved = combine([array[0::2] for array in moved], [array[1::2] for array in moved])
    return [array[0] for array in moved]


def tree_scan(arrays: Sequence[Array], axis: int, combine: Combine) -> list[Array]:
    """Inclusive scan along `axis` in log2(n) rounds (Hillis and Steele, 1986); order is kept."""
    length, result = arrays[0].shape[axis], list(arrays)
    position = np.arange(length).reshape([-1 if dim == axis else 1 for dim in range(arrays[0].ndim)])
    step = 1
    while step < length:
        before = [np.roll(array, step, axis=axis) for array in result]
        both = combine(before, result)
        result = [np.where(position >= step, new, old) for new, old in zip(both, result, strict=True)]
        step *= 2
    return result


def first_best(values: Array, axis: int, *, largest: bool) -> Array:
    """Index of the largest (smallest) element along `axis`: the leftmost of equals, and never a NaN among numbers."""
    if is_float(values.dtype):
        values = values.astype(np.float64)
        values = np.where(np.isnan(values), -np.inf if largest else np.inf, values)
    return np.asarray(values.argmax(axis=axis) if largest else values.argmin(axis=axis))


def mend(at: Internals) -> None:
    """Replace how the interpreter reduces and scans."""
    _mend_reduce(at)
    _mend_scan(at)


def _combiner(at: Internals, combine_fn: Any, dtypes: Sequence[Any]) -> Combine:
    """The candidate's combine function on arrays."""

    def combine(left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
        sides = [at.tensor(array, dtype) for side in (left, right) for array, dtype in zip(side, dtypes, strict=True)]
        made = combine_fn(*sides)
        made = made if isinstance(made, (tuple, list)) or hasattr(made, "values") else (made,)
        shape = left[0].shape
        return [
            np.broadcast_to(part.handle.data if at.is_tensor(part) else at.constant(part), shape).astype(side.dtype)
            for part, side in zip(made, left, strict=True)
        ]

    return combine


def _fast_reductions(at: Internals) -> dict[Any, Reduction]:
    """Reductions of `tl.standard` that numpy has; those that this Triton lacks are simply not in it."""
    ufuncs = {
        "_elementwise_max": np.fmax,
        "_elementwise_min": np.fmin,
        "_xor_combine": np.bitwise_xor,
        "_or_combine": np.bitwise_or,
    }
    standard = at.tl.standard
    fast: dict[Any, Reduction] = {at.member(standard, "_sum_combine"): lambda arrays, axis: [tree_sum(arrays[0], axis)]}
    for name, ufunc in ufuncs.items():
        if hasattr(standard, name):
            fast[getattr(standard, name)] = _by_ufunc(ufunc)
    for tie in ("left", "fast"):
        fast[at.member(standard, f"_argmax_combine_tie_break_{tie}")] = _by_best(largest=True)
        fast[at.member(standard, f"_argmin_combine_tie_break_{tie}")] = _by_best(largest=False)
    return fast


def _by_ufunc(ufunc: np.ufunc) -> Reduction:
    return lambda arrays, axis: [np.asarray(ufunc.reduce(arrays[0], axis=axis))]


def _by_best(*, largest: bool) -> Reduction:
    """Takes (values, whatever goes with them), and keeps what stands where the best value does."""

    def best(arrays: Sequence[Array], axis: int) -> list[Array]:
        index = np.expand_dims(first_best(arrays[0], axis, largest=largest), axis)
        return [np.take_along_axis(array, index, axis).squeeze(axis) for array in arrays]

    return best


def _mend_reduce(at: Internals) -> None:
    owner = at.member(at.interpreter, "ReduceOps")
    slow = at.member(owner, "generic_reduce")
    fast = _fast_reductions(at)

    def apply_impl(self: Any, inputs: Any) -> Any:
        dtypes = [tensor.dtype for tensor in inputs]
        arrays = [tensor.handle.data for tensor in inputs]
        shape, axis = arrays[0].shape, at.constant(self.axis)
        if axis is None:
            arrays, axis = [array.reshape(-1) for array in arrays], 0
            kept = [1] * len(shape)
        else:
            axis %= len(shape)
            kept = [1 if dim == axis else size for dim, size in enumerate(shape)]
        if self.combine_fn in fast:
            out = fast[self.combine_fn](arrays, axis)
        else:
            try:
                out = tree_reduce(arrays, axis, _combiner(at, self.combine_fn, dtypes))
            except Exception:
                # A combine function may branch on scalars, which only one element at a time can answer.
                return _unwrapped(slow(self, inputs))
        if at.constant(self.keep_dims):
            out = [array.reshape(kept) for array in out]
        return _unwrapped([at.tensor(array, dtype) for array, dtype in zip(out, dtypes, strict=True)])

    at.replace(owner, "apply_impl", apply_impl)


def _elementwise(ufunc: np.ufunc) -> Combine:
    return lambda left, right: [np.asarray(ufunc(left[0], right[0]))]


def _mend_scan(at: Internals) -> None:
    owner = at.member(at.interpreter, "ScanOps")
    slow = at.member(owner, "apply_impl")
    accumulate: dict[Any, np.ufunc] = {at.member(at.tl.standard, "_sum_combine"): np.add}
    accumulate[at.member(at.tl.standard, "_prod_combine")] = np.multiply

    def apply_impl(self: Any, inputs: Any) -> Any:
        dtypes = [tensor.dtype for tensor in inputs]
        arrays = [tensor.handle.data for tensor in inputs]
        axis, backwards = at.constant(self.axis) % arrays[0].ndim, bool(at.constant(self.reverse))
        if backwards:
            arrays = [np.flip(array, axis) for array in arrays]
        ufunc = accumulate.get(self.combine_fn)
        try:
            combine = _combiner(at, self.combine_fn, dtypes) if ufunc is None else _elementwise(ufunc)
            out = tree_scan(arrays, axis, combine)
        except Exception:
            return _unwrapped(slow(self, inputs))
        if backwards:
            out = [np.ascontiguousarray(np.flip(array, axis)) for array in out]
        return _unwrapped([at.tensor(array, dtype) for array, dtype in zip(out, dtypes, strict=True)])

    at.replace(owner, "apply_impl", apply_impl)


def _unwrapped(made: Any) -> Any:
    """One tensor by itself, several as a tuple: what every version's `apply` takes."""
    made = tuple(made) if isinstance(made, (list, tuple)) else (made,)
    return made[0] if len(made) == 1 else made
