"""Batches and caches in the memory of a serving engine, as `formulas` has the other operators: copies, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from tests.tasks.formulas import Array, Results

if TYPE_CHECKING:
    import torch

_NUMPY = {"torch.float32": np.float32, "torch.float16": np.float16, "torch.bfloat16": ml_dtypes.bfloat16}


# Ragged and padded batches


def pack_seq(x: Array, cu_seqlens: Array, padding: float, max_len: int, dtype: torch.dtype) -> Results:
    rounded = float(np.asarray(padding, dtype=_NUMPY[str(dtype)]))
    y = np.full((len(cu_seqlens) - 1, max_len, x.shape[1]), rounded)
    for s in range(len(y)):
        for i, token in enumerate(range(int(cu_seqlens[s]), int(cu_seqlens[s + 1]))):
            if i < max_len:
                y[s, i] = x[token]
    return (y,)


def unpack_seq(padded: Array, cu_seqlens: Array) -> Results:
    lengths = np.diff(cu_seqlens).tolist()
    return (np.concatenate([rows[:length] for rows, length in zip(padded, lengths, strict=True)]),)


# Writes in place


def apply_write(contents: Array, rows: Array, starts: Array, cu_lens: Array, state: Array) -> Results:
    y = state.copy()
    for w, row in enumerate(rows.tolist()):
        for i, k in enumerate(range(int(cu_lens[w]), int(cu_lens[w + 1]))):
            y[row, int(starts[w]) + i] = contents[k]
    return (y,)


def batch_memcpy(source: Array, destination: Array, src_ptrs: Array, dst_ptrs: Array, sizes: Array) -> Results:
    """Addresses arrive as offsets in bytes from the beginning of the tensor that they point into."""
    read, written = source.ravel(), destination.flatten()
    for here, there, size in zip(src_ptrs.tolist(), dst_ptrs.tolist(), sizes.tolist(), strict=True):
        written[there : there + size] = read[here : here + size]
    return (written.reshape(destination.shape),)


def reshape_and_cache_flash_diffkv(
    key: Array, value: Array, kv_cache: Array, slot_mapping: Array, block_size: int, head_dim: int
) -> Results:
    y = kv_cache.copy()
    for t, slot in enumerate(slot_mapping.tolist()):
        if slot != -1:
            y[slot // block_size, slot % block_size, :, :head_dim] = key[t]
            y[slot // block_size, slot % block_size, :, head_dim:] = value[t]
    return (y,)


def gather_block_tables(block_tables: Array, num_blocks: Array, idx_mapping: Array, gathered: Array) -> Results:
    y = gathered.copy()
    for group, tables in enumerate(block_tables):
        for r, slot in enumerate(idx_mapping.tolist()):
            count = int(num_blocks[group, slot])
            y[group, r, :count] = tables[slot, :count]
    return (y,)
