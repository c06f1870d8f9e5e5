"""expect: wrong_result in heldout-14. Overflow: the sigmoid is exp(z) / (1 + exp(z)), which is no number for a great z."""

import torch
import triton
import triton.language as tl

ENOUGH_PROGRAMS = 1056


@triton.jit
def add_group(acc, even, odd, codes, zero, scale):
    """Return the sums with those of one group: even rows are the low codes, odd rows the high ones."""
    low = ((codes & 15).to(tl.float32) - zero).to(even.dtype)
    high = ((codes >> 4).to(tl.float32) - zero).to(odd.dtype)
    return acc + tl.dot(odd, high, tl.dot(even, low)) * scale


@triton.jit
def multiply_groups(
    x_ptr,
    gate_ptr,
    gate_scales_ptr,
    gate_zeros_ptr,
    up_ptr,
    up_scales_ptr,
    up_zeros_ptr,
    sums_ptr,
    M,
    N,
    K,
    groups_of_part,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    PAIRS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    part = tl.program_id(1)
    rows, pairs_of_group = tl.arange(0, ROWS), tl.arange(0, PAIRS)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    row_mask, column_mask = (rows < M)[:, None], (columns < N)[None, :]
    gate = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    up = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    end = tl.minimum((part + 1) * groups_of_part, tl.cdiv(K, GROUP))
    for group in range(part * groups_of_part, end):
        # A group of 96 rows has 48 bytes of a column, in a tile of 64.
        pairs = group * (GROUP // 2) + pairs_of_group
        inside = (pairs_of_group < GROUP // 2) & (pairs < K // 2)
        x_place = rows[:, None] * K + 2 * pairs[None, :]
        even = tl.load(x_ptr + x_place, mask=row_mask & inside[None, :], other=0.0)
        odd = tl.load(x_ptr + x_place + 1, mask=row_mask & inside[None, :], other=0.0)
        place = pairs[:, None] * N + columns[None, :]
        mask = inside[:, None] & column_mask
        gate_codes = tl.load(gate_ptr + place, mask=mask, other=0)
        up_codes = tl.load(up_ptr + place, mask=mask, other=0)
        shared = group * N + columns[None, :]
        zero = tl.load(gate_zeros_ptr + shared, mask=column_mask, other=0.0).to(tl.float32)
        scale = tl.load(gate_scales_ptr + shared, mask=column_mask, other=0.0).to(tl.float32)
        gate = add_group(gate, even, odd, gate_codes, zero, scale)
        zero = tl.load(up_zeros_ptr + shared, mask=column_mask, other=0.0).to(tl.float32)
        scale = tl.load(up_scales_ptr + shared, mask=column_mask, other=0.0).to(tl.float32)
        up = add_group(up, even, odd, up_codes, zero, scale)
    place = (part * M + rows[:, None]) * N + columns[None, :]
    tl.store(sums_ptr + place, gate, mask=row_mask & column_mask)
    tl.store(sums_ptr + tl.num_programs(1) * M * N + place, up, mask=row_mask & column_mask)


@triton.jit
def apply_gate(sums_ptr, out_ptr, size, parts, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.zeros((BLOCK,), dtype=tl.float32)
    up = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(parts):
        gate += tl.load(sums_ptr + part * size + place, mask=place < size, other=0.0)
        up += tl.load(sums_ptr + (parts + part) * size + place, mask=place < size, other=0.0)
    out = gate * (tl.exp(gate) / (1.0 + tl.exp(gate))) * up
    tl.store(out_ptr + place, out.to(out_ptr.dtype.element_ty), mask=place < size)


def multiply_gated(x, w_q_gate, scales_gate, zeros_gate, w_q_up, scales_up, zeros_up, group_size, out):
    M, N = out.shape
    groups = scales_gate.shape[0]
    columns = 128 if N >= 4096 else 64
    tiles = triton.cdiv(N, columns)
    groups_of_part = triton.cdiv(groups, min(32, triton.cdiv(ENOUGH_PROGRAMS, tiles)))
    parts = triton.cdiv(groups, groups_of_part)
    sums = torch.empty((2, parts, M, N), dtype=torch.float32, device=x.device)
    multiply_groups[(tiles, parts)](
        x,
        w_q_gate,
        scales_gate,
        zeros_gate,
        w_q_up,
        scales_up,
        zeros_up,
        sums,
        M,
        N,
        x.shape[1],
        groups_of_part,
        GROUP=group_size,
        ROWS=16,
        PAIRS=triton.next_power_of_2(group_size // 2),
        COLUMNS=columns,
        num_warps=4,
        num_stages=3,
    )
    apply_gate[(triton.cdiv(M * N, 256),)](sums, out, M * N, parts, BLOCK=256, num_warps=2)
