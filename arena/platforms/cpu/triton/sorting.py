"""`tl.sort`, `tl.topk` and `tl.flip` by numpy, in place of bitonic networks of interpreted operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from arena.platforms.cpu.triton.internals import Internals


def mend(at: Internals) -> None:
    """Give the interpreter numpy's functions where it would rewrite Triton's own."""
    rewritten = at.member(at.member(at.interpreter, "InterpretedFunction"), "rewritten_fn")
    standard = at.tl.standard

    def ordered(x: Any, k: Any, dim: Any, descending: Any) -> Any:
        k, dim, descending = at.constant(k), at.constant(dim), bool(at.constant(descending))
        data = x.handle.data
        if dim is not None and int(dim) not in (-1, data.ndim - 1):
            raise ValueError("only minor dimension is currently supported")
        made = np.sort(data, axis=-1)
        if descending:
            made = np.flip(made, -1)
        if k is not None:
            if not 0 < int(k) <= data.shape[-1] or int(k) & (int(k) - 1):
                raise ValueError(f"topk: k must be a power of two up to {data.shape[-1]}, not {k}")
            made = made[..., : int(k)]
        return at.tensor(np.ascontiguousarray(made), x.dtype)

    def sort(x: Any, dim: Any = None, descending: Any = False) -> Any:
        return ordered(x, None, dim, descending)

    def topk(x: Any, k: Any, dim: Any = None, descending: Any = True) -> Any:
        return ordered(x, k, dim, descending)

    def sort_impl(x: Any, k: Any = None, dim: Any = None, descending: Any = False) -> Any:
        return ordered(x, k, dim, descending)

    def flip(x: Any, dim: Any = None) -> Any:
        axis = at.constant(dim)
        made = np.flip(x.handle.data, -1 if axis is None else int(axis))
        return at.tensor(np.ascontiguousarray(made), x.dtype)

    rewritten[at.member(standard, "sort").fn] = sort
    rewritten[at.member(standard, "flip").fn] = flip
    rewritten[at.member(standard, "topk").fn] = topk
    rewritten[at.member(standard, "sort_impl").fn] = sort_impl
