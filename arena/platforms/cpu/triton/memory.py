"""Loads, stores and atomics on the caller's memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from arena.platforms.cpu.triton import fence
from arena.platforms.cpu.triton.casting import convert
from arena.platforms.cpu.triton.device_memory import translated
from arena.platforms.cpu.triton.formats import bits, special_types
from arena.platforms.cpu.triton.internals import Array, Internals
from arena.platforms.cpu.triton.launch_order import runs_ends


def mend(at: Internals) -> None:
    """Replace loads, stores, histograms and the atomics that the interpreter's C++ has no type for."""
    at.replace(at.interpreter, "_interpreter", _Translating(at.interpreter._interpreter))
    _mend_stores(at)
    _mend_atomics(at)


class _Translating:
    """The interpreter's C++ module, whose loads, stores and atomics find device memory behind its addresses."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def load(self, ptr: Array, mask: Array, other: Array, dtype: Any) -> Any:
        return self._own.load(translated(ptr, mask, np.dtype(dtype).itemsize), mask, other, dtype)

    def store(self, ptr: Array, value: Array, mask: Array) -> Any:
        return self._own.store(translated(ptr, mask, value.dtype.itemsize), value, mask)

    def atomic_rmw(self, op: Any, ptr: Array, value: Array, mask: Array, order: Any) -> Any:
        return self._own.atomic_rmw(op, translated(ptr, mask, value.dtype.itemsize), value, mask, order)

    def atomic_cas(self, ptr: Array, compared: Array, value: Array, order: Any) -> Any:
        used = np.ones(ptr.shape, np.bool_)
        return self._own.atomic_cas(translated(ptr, used, value.dtype.itemsize), compared, value, order)


def read(at: Internals, addresses: Array, mask: Array, instead: Array) -> Array:
    """The elements at `addresses` where `mask` holds, `instead` elsewhere; its dtype says what is read.

    Raises `IndexError` where they lie outside of the fence around the arguments.
    """
    # As bit patterns: the C++ of Triton 3.9 refuses numpy types that are not numpy's own.
    raw = bits(instead)
    fence.check(addresses, np.broadcast_to(mask, instead.shape), instead.dtype.itemsize)
    return np.asarray(at.interpreter._interpreter.load(addresses, mask, raw, raw.dtype)).view(instead.dtype)


def write(at: Internals, addresses: Array, values: Array, mask: Array) -> None:
    """Store `values` at `addresses` where `mask` holds.

    A store elsewhere changes canaries. Where the judge does not check them, it is an error as of a load.
    """
    if runs_ends():
        fence.check(addresses, np.broadcast_to(mask, values.shape), values.dtype.itemsize, stores=True)
    at.interpreter._interpreter.store(addresses, bits(values), mask)


def histogram(data: Array, bins: int, mask: Array | None) -> Array:
    """How many elements equal 0, 1, … bins - 1, as int32; others and masked ones are not counted."""
    counted = (data >= 0) & (data < bins)
    if mask is not None:
        counted &= mask
    return np.bincount(data[counted].astype(np.int64), minlength=bins).astype(np.int32)


def _mend_stores(at: Internals) -> None:
    def create_masked_load(self: Any, ptrs: Any, mask: Any, other: Any, *_: Any, **__: Any) -> Any:
        element = ptrs.get_element_ty()
        dtype = at.np_dtype(element)
        instead = np.zeros(ptrs.data.shape, dtype) if other is None else convert(other.data, dtype)
        return at.handle(read(at, ptrs.data, mask.data, instead), element)

    def create_masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *_: Any, **__: Any) -> Any:
        # The C++ below copies itemsize bytes: a wider numpy value would overwrite the neighbour.
        write(at, ptrs.data, convert(value.data, at.np_dtype(ptrs.get_element_ty())), mask.data)

    def create_histogram(self: Any, data: Any, bins: Any, mask: Any = None) -> Any:
        counts = histogram(data.data, int(bins), None if mask is None else mask.data)
        return at.handle(counts, at.tl.int32)

    at.replace(at.builder, "create_masked_load", create_masked_load)
    at.replace(at.builder, "create_masked_store", create_masked_store)
    at.replace(at.builder, "create_histogram", create_histogram)


def _mend_atomics(at: Internals) -> None:
    builder, handle = at.builder, at.handle
    original_rmw = at.member(builder, "create_atomic_rmw")
    original_cas = at.member(builder, "create_atomic_cas")
    operations = at.member(at.interpreter._ir, "ATOMIC_OP")
    add, exchange = at.member(operations, "FADD"), at.member(operations, "XCHG")
    bfloat16 = special_types()["bf16"]
    ours = (bfloat16, np.dtype(np.float16))  # the C++ has no bfloat16

    def update_16_bits(op: Any, ptr: Any, val: Any, mask: Any) -> Any:
        """Programs run one after the other here, so only lanes that share an address must take turns."""
        old = np.zeros(val.data.shape, val.data.dtype)
        where, numbers = np.broadcast_to(ptr.data, old.shape).reshape(-1), val.data.reshape(-1)
        lanes = np.flatnonzero(np.broadcast_to(mask.data, old.shape).reshape(-1))
        before = old.reshape(-1)
        while lanes.size:
            _, first = np.unique(where[lanes], return_index=True)
            turn = lanes[first]
            everywhere = np.ones(turn.shape, np.bool_)
            before[turn] = read(at, where[turn], everywhere, before[turn])
            after = before[turn] + numbers[turn] if op == add else numbers[turn]
            write(at, where[turn], after, everywhere)
            lanes = np.delete(lanes, first)
        return handle(before.reshape(old.shape), val.dtype.scalar)

    def create_atomic_rmw(self: Any, op: Any, ptr: Any, val: Any, mask: Any, *order: Any) -> Any:
        if val.data.dtype in ours and op in (add, exchange):
            return update_16_bits(op, ptr, val, mask)
        return original_rmw(self, op, ptr, val, mask, *order)

    def create_atomic_cas(self: Any, ptr: Any, cmp: Any, val: Any, *order: Any) -> Any:
        if val.data.dtype != bfloat16:
            return original_cas(self, ptr, cmp, val, *order)
        raw = [handle(bits(side.data), side.dtype) for side in (cmp, val)]
        old = original_cas(self, ptr, *raw, *order)
        return handle(old.data.view(bfloat16), val.dtype.scalar)

    at.replace(builder, "create_atomic_rmw", create_atomic_rmw)
    at.replace(builder, "create_atomic_cas", create_atomic_cas)
