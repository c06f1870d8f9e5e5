"""Cumulative sums of gate vectors; heads are contiguous, so that a token is one long row.

Few chunks are summed by tiles that hold a whole chunk, 16-bit gates of many by threads that have four columns each and
eight rows at a time: nothing crosses a lane, and eight loads of eight bytes are on their way before the first sum.
"""

import triton
import triton.language as tl

TILE_ELEMENTS = 4096
STRIP = 512
MANY_PROGRAMS = 1024


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


@triton.jit
def _row(g_ptr, base, step, length, token_stride, columns, inside, CHUNK: tl.constexpr, REVERSE: tl.constexpr):
    """Row `step` of a chunk, counted from its end if REVERSE: its token, and its values, 0 past the last."""
    row = CHUNK - 1 - step if REVERSE else step
    token = base + row
    g = tl.load(g_ptr + token * token_stride + columns, mask=inside & (row < length), other=0.0)
    return token, g


@triton.jit
def _add_row(total, row, sums_ptr, end, row_size, columns, inside, scale):
    """The total with this row, which is stored."""
    token, g = row
    total += g.to(tl.float32)
    tl.store(sums_ptr + token * row_size + columns, total * scale, mask=inside & (token < end))
    return total


@triton.jit
def _strip_sums(
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
    """All tokens of one chunk, COLUMNS values of each, eight rows after eight rows."""
    chunk = tl.program_id(0).to(tl.int64)
    seq = tl.load(chunk_indices_ptr + chunk * 2)
    if seq >= 0:
        begin = tl.load(cu_seqlens_ptr + seq) + tl.load(chunk_indices_ptr + chunk * 2 + 1) * CHUNK
        end = tl.load(cu_seqlens_ptr + seq + 1)
        base, length = begin.to(tl.int64), end - begin
        columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        inside = columns < row_size
        total = tl.zeros((COLUMNS,), tl.float32)
        for step in range(0, CHUNK, 8):
            r0 = _row(g_ptr, base, step, length, token_stride, columns, inside, CHUNK, REVERSE)
            r1 = _row(g_ptr, base, step + 1, length, token_stride, columns, inside, CHUNK, REVERSE)
            r2 = _row(g_ptr, base, step + 2, length, token_stride, columns, inside, CHUNK, REVERSE)
            r3 = _row(g_ptr, base, step + 3, length, token_stride, columns, inside, CHUNK, REVERSE)
            r4 = _row(g_ptr, base, step + 4, length, token_stride, columns, inside, CHUNK, REVERSE)
            r5 = _row(g_ptr, base, step + 5, length, token_stride, columns, inside, CHUNK, REVERSE)
            r6 = _row(g_ptr, base, step + 6, length, token_stride, columns, inside, CHUNK, REVERSE)
            r7 = _row(g_ptr, base, step + 7, length, token_stride, columns, inside, CHUNK, REVERSE)
            total = _add_row(total, r0, sums_ptr, end, row_size, columns, inside, scale)
            total = _add_row(total, r1, sums_ptr, end, row_size, columns, inside, scale)
            total = _add_row(total, r2, sums_ptr, end, row_size, columns, inside, scale)
            total = _add_row(total, r3, sums_ptr, end, row_size, columns, inside, scale)
            total = _add_row(total, r4, sums_ptr, end, row_size, columns, inside, scale)
            total = _add_row(total, r5, sums_ptr, end, row_size, columns, inside, scale)
            total = _add_row(total, r6, sums_ptr, end, row_size, columns, inside, scale)
            total = _add_row(total, r7, sums_ptr, end, row_size, columns, inside, scale)


def fla_cumsum_vector(g, cu_seqlens, chunk_indices, chunk_size, reverse, scale, sums):
    _, num_heads, head_dim = g.shape
    row_size, chunks = num_heads * head_dim, chunk_indices.shape[0]
    strips = triton.cdiv(row_size, STRIP)
    if g.element_size() == 2 and chunks * strips >= MANY_PROGRAMS:
        kernel, columns, num_warps = _strip_sums, STRIP, 4
    else:
        kernel, columns = _tile_sums, min(TILE_ELEMENTS // chunk_size, triton.next_power_of_2(row_size))
        num_warps = max(1, min(8, chunk_size * columns // 1024))
    kernel[(chunks, triton.cdiv(row_size, columns))](
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
        num_warps=num_warps,
    )
