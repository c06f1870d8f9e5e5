"""A product of few rows that reads the weight once, by as many programs as fill a GPU.

The baseline has a program for every row and 64 columns, so that the weight is read M times, and one row of 4096
columns makes 64 programs, half of a GPU's compute units, each with K / 128 steps one after the other. Every step ends
in a reduction across all threads.

Here K is split among about 1024 programs, whose sums are added to the residual by a second launch. Three to sixteen
rows of 16 bits are padded to the 16 of a matrix instruction, so that one program multiplies a tile of the weight with
all rows. Otherwise a program has one or two rows, which share each load of a weight, and adds up across threads once,
at its end. A weight of up to 65536 elements takes one launch without parts: programs of four columns and up to 2048
places of K a step, in place of 64 columns and 128 places.
"""

import torch
import triton
import triton.language as tl

ENOUGH_PROGRAMS = 1024
MOST_PARTS = 64
FEWEST_STEPS = 4
SMALL_WEIGHT = 65536


@triton.jit
def _store_sums(residual_ptr, parts_ptr, places, inside, part, size, sums, WHOLE: tl.constexpr):
    """Add whole sums to the residual, or store the sums of one part of K."""
    if WHOLE:
        before = tl.load(residual_ptr + places, mask=inside, other=0.0).to(tl.float32)
        tl.store(residual_ptr + places, (before + sums).to(residual_ptr.dtype.element_ty), mask=inside)
    else:
        tl.store(parts_ptr + part.to(tl.int64) * size + places, sums, mask=inside)


@triton.jit
def _multiply_rows(
    x_ptr,
    weight_ptr,
    residual_ptr,
    parts_ptr,
    weight_row_stride,
    weight_column_stride,
    M,
    N,
    K,
    part_depth,
    PAIR: tl.constexpr,
    WHOLE: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Multiply one row, or two, with some columns of the weight without matrix units."""
    m = tl.program_id(1) * (2 if PAIR else 1)
    n = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    begin = tl.program_id(2) * part_depth
    first = tl.zeros((DEPTH, COLUMNS), tl.float32)
    second = tl.zeros((DEPTH, COLUMNS), tl.float32)
    for start in range(begin, tl.minimum(begin + part_depth, K), DEPTH):
        k = start + tl.arange(0, DEPTH)
        places = k.to(tl.int64)[:, None] * weight_row_stride + n.to(tl.int64)[None, :] * weight_column_stride
        inside = (k < K)[:, None] & (n < N)[None, :]
        weight = tl.load(weight_ptr + places, mask=inside, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + m * K + k, mask=k < K, other=0.0).to(tl.float32)
        first += x[:, None] * weight
        if PAIR:
            x = tl.load(x_ptr + (m + 1) * K + k, mask=(k < K) & (m + 1 < M), other=0.0).to(tl.float32)
            second += x[:, None] * weight
    places = m * N + n
    part = tl.program_id(2)
    _store_sums(residual_ptr, parts_ptr, places, n < N, part, M * N, tl.sum(first, axis=0), WHOLE)
    if PAIR:
        inside = (n < N) & (m + 1 < M)
        _store_sums(residual_ptr, parts_ptr, places + N, inside, part, M * N, tl.sum(second, axis=0), WHOLE)


@triton.jit
def _multiply_padded(
    x_ptr,
    weight_ptr,
    residual_ptr,
    parts_ptr,
    weight_row_stride,
    weight_column_stride,
    M,
    N,
    K,
    part_depth,
    WHOLE: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Multiply all rows, padded to 16, with some columns of the weight by matrix units."""
    m = tl.arange(0, 16)
    n = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    begin = tl.program_id(1) * part_depth
    sums = tl.zeros((16, COLUMNS), tl.float32)
    for start in range(begin, tl.minimum(begin + part_depth, K), DEPTH):
        k = start + tl.arange(0, DEPTH)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        places = k.to(tl.int64)[:, None] * weight_row_stride + n.to(tl.int64)[None, :] * weight_column_stride
        weight = tl.load(weight_ptr + places, mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        sums = tl.dot(x, weight, sums)
    inside = (m < M)[:, None] & (n < N)[None, :]
    places = m[:, None] * N + n[None, :]
    _store_sums(residual_ptr, parts_ptr, places, inside, tl.program_id(1), M * N, sums, WHOLE)


@triton.jit
def _add_parts(parts_ptr, residual_ptr, size, parts, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.arange(0, PARTS)
    inside = (part < parts)[:, None] & (places < size)[None, :]
    sums = tl.load(parts_ptr + part.to(tl.int64)[:, None] * size + places[None, :], mask=inside, other=0.0)
    before = tl.load(residual_ptr + places, mask=places < size, other=0.0).to(tl.float32)
    after = before + tl.sum(sums, axis=0)
    tl.store(residual_ptr + places, after.to(residual_ptr.dtype.element_ty), mask=places < size)


def _parts_of(K, depth, programs):
    """Return the places of K of one part, and the number of parts, for so many programs a part."""
    steps = triton.cdiv(K, depth)
    wanted = max(1, min(ENOUGH_PROGRAMS // programs, steps // FEWEST_STEPS, MOST_PARTS))
    part_depth = triton.cdiv(steps, wanted) * depth
    return part_depth, triton.cdiv(K, part_depth)


def small_m_gemm_multreduce(x, weight, residual):
    M, K = x.shape
    N = weight.shape[1]
    padded = M > 2 and x.element_size() == 2
    small = N * K <= SMALL_WEIGHT and not padded
    columns, depth = 128, 64 if padded else 32
    if small:
        columns, depth = 4, min(triton.next_power_of_2(K), 2048)
    strips = triton.cdiv(N, columns)
    groups = 1 if padded else triton.cdiv(M, 2)
    part_depth, count = (K, 1) if small else _parts_of(K, depth, strips * groups)
    sums = residual
    if count > 1:
        sums = torch.empty((count, M, N), dtype=torch.float32, device=x.device)
    shape = (*weight.stride(), M, N, K, part_depth)
    constants = {"WHOLE": count == 1, "COLUMNS": columns, "DEPTH": depth}
    if padded:
        _multiply_padded[(strips, count)](x, weight, residual, sums, *shape, **constants)
    else:
        warps = 8 if depth * columns > 4096 else 4
        grid = (strips, groups, count)
        _multiply_rows[grid](x, weight, residual, sums, *shape, PAIR=M > 1, **constants, num_warps=warps)
    if count > 1:
        parts = triton.next_power_of_2(count)
        block = max(64, 2048 // parts)
        grid = (triton.cdiv(M * N, block),)
        _add_parts[grid](sums, residual, M * N, count, PARTS=parts, BLOCK=block)
