"""Cumulative sums of gate vectors by tiles of a whole chunk; heads are contiguous, so that a token is one long row."""

import triton
import triton.language as tl

TILE_ELEMENTS = 4096


@triton.jit
def _tile_sums(
    g_ptr,
    cu_seqlens_ptr,
    chunk_indices_ptr,
    sums_ptr,
    token_stride,
    row_size,
    scale,
    CHUNK: tl.constexpr,
    COLUMNS: tl.constexpr,
    REVERSE: tl.constexpr,
):
    """All tokens of one chunk, COLUMNS values of each: every load is on its way before the first sum."""
    chunk = tl.program_id(0).to(tl.int64)
    seq = tl.load(chunk_indices_ptr + chunk * 2)
    if seq >= 0:
        begin = tl.load(cu_seqlens_ptr + seq) + tl.load(chunk_indices_ptr + chunk * 2 + 1) * CHUNK
        length = tl.load(cu_seqlens_ptr + seq + 1) - begin
        rows = tl.arange(0, CHUNK)
        columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        tokens = begin.to(tl.int64) + rows
        inside = (rows < length)[:, None] & (columns < row_size)[None, :]
        g = tl.load(g_ptr + tokens[:, None] * token_stride + columns[None, :], mask=inside, other=0.0).to(tl.float32)
        sums = tl.cumsum(g, axis=0, reverse=REVERSE) * scale
        tl.store(sums_ptr + tokens[:, None] * row_size + columns[None, :], sums, mask=inside)


def fla_cumsum_vector(g, cu_seqlens, chunk_indices, chunk_size, reverse, scale, sums):
    _, num_heads, head_dim = g.shape
    row_size = num_heads * head_dim
    columns = min(TILE_ELEMENTS // chunk_size, triton.next_power_of_2(row_size))
    _tile_sums[(chunk_indices.shape[0], triton.cdiv(row_size, columns))](
        g,
        cu_seqlens,
        chunk_indices,
        sums,
        g.stride(0),
        row_size,
        scale,
        CHUNK=chunk_size,
        COLUMNS=columns,
        REVERSE=reverse,
        num_warps=max(1, min(8, chunk_size * columns // 1024)),
    )
