"""Mamba's products within chunks, tuned by Triton.

With causal, the engine leaves what lies above the diagonal arbitrary. A kernel of ours clears it; its time counts.
"""

import torch
import triton
import triton.language as tl
from mamba_ssm.ops.triton.ssd_bmm import _bmm_chunk_fwd_kernel

TYPES = {torch.bfloat16: tl.bfloat16, torch.float16: tl.float16, torch.float32: tl.float32}


@triton.jit
def clear_above(out, SIZE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    if (tl.program_id(2) + 1) * COLUMNS <= tl.program_id(1) * ROWS:
        return
    place = out + tl.program_id(0).to(tl.int64) * SIZE * SIZE + row[:, None] * SIZE + column[None, :]
    above = (column[None, :] > row[:, None]) & (row[:, None] < SIZE) & (column[None, :] < SIZE)
    tl.store(place, tl.zeros((ROWS, COLUMNS), tl.float32), mask=above)


def ssd_bmm(a, b, causal, out):
    batch, seq_len, groups, k = a.shape
    _, chunks, _, size, _ = out.shape

    def grid(meta):
        tiles = triton.cdiv(size, meta["BLOCK_SIZE_M"]) * triton.cdiv(size, meta["BLOCK_SIZE_N"])
        return tiles, batch, chunks * groups

    _bmm_chunk_fwd_kernel[grid](
        a,
        b,
        out,
        None,
        seq_len,
        size,
        k,
        groups,
        *a.stride(),
        *b.stride(),
        *out.stride(),
        0,
        0,
        causal,
        TYPES[a.dtype],
        HAS_SEQ_IDX=False,
    )
    if causal:
        clear_above[(batch * chunks * groups, triton.cdiv(size, 16), triton.cdiv(size, 64))](out, size, 16, 64)
