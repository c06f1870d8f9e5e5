"""Gated product with 4-bit weights, split along K: enough programs to keep the memory busy, then one that adds parts.

Code minus zero is an integer of at most 15, exact in 16 bits: what enters the product is not rounded, and a scale is
applied to the sums of its group instead of to every weight.
"""

import torch
import triton
import triton.language as tl

PROGRAMS = 1056


@triton.jit
def _multiply_pairs(even, odd, codes, zero, acc):
    low = ((codes & 15).to(tl.int16) - zero[None, :]).to(even.dtype)
    high = ((codes >> 4).to(tl.int16) - zero[None, :]).to(odd.dtype)
    acc = tl.dot(even, low, acc)
    return tl.dot(odd, high, acc)


@triton.jit
def _multiply_part(
    x_ptr,
    gate_ptr,
    gate_scales_ptr,
    gate_zeros_ptr,
    up_ptr,
    up_scales_ptr,
    up_zeros_ptr,
    parts_ptr,
    M,
    N,
    K,
    groups_of_part,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    PAIRS: tl.constexpr,
):
    rows = tl.arange(0, ROWS)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    part = tl.program_id(1)
    in_rows, in_columns = rows < M, columns < N
    gate = tl.zeros((ROWS, COLUMNS), tl.float32)
    up = tl.zeros((ROWS, COLUMNS), tl.float32)
    first_group = part * groups_of_part
    last_group = tl.minimum(first_group + groups_of_part, tl.cdiv(K, GROUP))
    for group in range(first_group, last_group):
        places = group * N + columns
        gate_scale = tl.load(gate_scales_ptr + places, mask=in_columns, other=0.0).to(tl.float32)
        gate_zero = tl.load(gate_zeros_ptr + places, mask=in_columns, other=0).to(tl.int16)
        up_scale = tl.load(up_scales_ptr + places, mask=in_columns, other=0.0).to(tl.float32)
        up_zero = tl.load(up_zeros_ptr + places, mask=in_columns, other=0).to(tl.int16)
        first = group * (GROUP // 2)
        end = tl.minimum(first + GROUP // 2, K // 2)
        gate_sums = tl.zeros((ROWS, COLUMNS), tl.float32)
        up_sums = tl.zeros((ROWS, COLUMNS), tl.float32)
        for step in tl.static_range((GROUP // 2 + PAIRS - 1) // PAIRS):
            pairs = first + step * PAIRS + tl.arange(0, PAIRS)
            inside = pairs < end
            x_ptrs = x_ptr + rows[:, None] * K + 2 * pairs[None, :]
            x_mask = in_rows[:, None] & inside[None, :]
            even = tl.load(x_ptrs, mask=x_mask, other=0.0)
            odd = tl.load(x_ptrs + 1, mask=x_mask, other=0.0)
            offsets = pairs[:, None] * N + columns[None, :]
            mask = inside[:, None] & in_columns[None, :]
            gate_codes = tl.load(gate_ptr + offsets, mask=mask, other=0)
            up_codes = tl.load(up_ptr + offsets, mask=mask, other=0)
            gate_sums = _multiply_pairs(even, odd, gate_codes, gate_zero, gate_sums)
            up_sums = _multiply_pairs(even, odd, up_codes, up_zero, up_sums)
        gate += gate_sums * gate_scale[None, :]
        up += up_sums * up_scale[None, :]
    out = parts_ptr + (part * M + rows[:, None]) * N + columns[None, :]
    mask = in_rows[:, None] & in_columns[None, :]
    tl.store(out, gate, mask=mask)
    tl.store(out + tl.num_programs(1) * M * N, up, mask=mask)


@triton.jit
def _add_parts(parts_ptr, out_ptr, size, parts, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < size
    gate = tl.zeros((BLOCK,), tl.float32)
    up = tl.zeros((BLOCK,), tl.float32)
    for part in range(parts):
        gate += tl.load(parts_ptr + part * size + places, mask=inside, other=0.0)
        up += tl.load(parts_ptr + (parts + part) * size + places, mask=inside, other=0.0)
    out = gate * tl.sigmoid(gate) * up
    tl.store(out_ptr + places, out.to(out_ptr.dtype.element_ty), mask=inside)


def w4a16_gated_gemv(x, gate_qweight, gate_scales, gate_zeros, up_qweight, up_scales, up_zeros, group_size, out):
    M, N = out.shape
    K = x.shape[1]
    groups = gate_scales.shape[0]
    pairs = 64
    while pairs > 16 and group_size // 2 % pairs:
        pairs //= 2
    columns = 128 if N >= 2048 else 64
    tiles = triton.cdiv(N, columns)
    parts = max(1, min(groups, 32, triton.cdiv(PROGRAMS, tiles)))
    groups_of_part = triton.cdiv(groups, parts)
    parts = triton.cdiv(groups, groups_of_part)
    sums = torch.empty((2, parts, M, N), dtype=torch.float32, device=x.device)
    _multiply_part[(tiles, parts)](
        x,
        gate_qweight,
        gate_scales,
        gate_zeros,
        up_qweight,
        up_scales,
        up_zeros,
        sums,
        M,
        N,
        K,
        groups_of_part,
        GROUP=group_size,
        ROWS=16,
        COLUMNS=columns,
        PAIRS=pairs,
        num_warps=4,
        num_stages=3,
    )
    _add_parts[(triton.cdiv(M * N, 256),)](sums, out, M * N, parts, BLOCK=256, num_warps=2)
