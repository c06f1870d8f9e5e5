"""Routed expert product with packed weights: every byte is loaded once, and the weights are the left operand.

The baseline has tiles of 32 columns and 32 places of K. It loads every byte of two codes twice, widens codes to 32
bits and scales a second accumulator for each group. Here a first launch puts the even values of each token before the
odd ones. The low halves of a tile of bytes are then multiplied with the even values, and the high halves with the odd
ones, so that codes need no reordering. Halves become 16-bit floats by one bitwise operation: they are the low mantissa
bits of 1024 in float16 and of 128 in bfloat16. Zeros, which another short launch widened, are subtracted from them
exactly. The difference is scaled and rounded to the dtype of x, as a weight of 16 bits would be. One accumulator takes
all groups.

The product is that of the weights by the tokens, both turned: the units of an H200 take the left operand from
registers. A program has 64 or 128 columns and up to 128 places at a time, in one loop over all groups. A step ends when
its products are done: else Triton 3.6 lets them run into the next step, which overwrites the registers of their left
operand.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units


@triton.jit
def _part_even_and_odd(x_ptr, out_ptr, half, BLOCK: tl.constexpr):
    """Copy a row of 2 * half values, the even ones before the odd ones."""
    row = x_ptr + tl.program_id(0).to(tl.int64) * 2 * half
    to = out_ptr + tl.program_id(0).to(tl.int64) * 2 * half
    i = tl.program_id(1) * 2 * BLOCK + tl.arange(0, 2 * BLOCK)
    even, odd = tl.split(tl.reshape(tl.load(row + i, mask=i < 2 * half, other=0.0), (BLOCK, 2)))
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(to + i, even, mask=i < half)
    tl.store(to + half + i, odd, mask=i < half)


@triton.jit
def _widen_zeros(qzeros_ptr, out_ptr, N, groups, BASE: tl.constexpr, BITS: tl.constexpr, BLOCK: tl.constexpr):
    """Store BASE plus the zeros of one expert, column by column, as numbers of the dtype of out."""
    expert = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N * groups
    column = i // groups
    if BITS == 4:
        places = expert * tl.cdiv(N, 2) * groups + column // 2 * groups + i % groups
    else:
        places = expert * N * groups + i
    zeros = tl.load(qzeros_ptr + places, mask=inside, other=0).to(tl.int32)
    if BITS == 4:
        zeros = (zeros >> (column % 2 * 4)) & 15
    zeros = (zeros + BASE).to(tl.float32).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + expert * N * groups + i, zeros, mask=inside)


@triton.jit
def _as_float(codes, scale, zero, BASE: tl.constexpr):
    """Return (BASE + codes - zero) * scale in scale's dtype for int16 codes (columns, places)."""
    if BASE == 1024:
        steps = (codes | 0x6400).to(tl.float16, bitcast=True)
    elif BASE == 128:
        steps = (codes | 0x4300).to(tl.bfloat16, bitcast=True)
    else:
        steps = codes.to(scale.dtype)
    return (steps - zero[:, None]) * scale[:, None]


@triton.jit
def _await_products(acc, piece):
    """Return the sum: a use of it outside of products makes Triton wait for them. A piece is never below 0."""
    if piece < 0:
        acc = -acc
    return acc


@triton.jit
def _multiply(weight, x, acc, TURNED: tl.constexpr):
    if TURNED:
        acc = tl.dot(weight, x.T, acc)
    else:
        acc = tl.dot(x, weight.T, acc, input_precision=PRECISION)
    return acc


@triton.jit
def _quantized_expert_tile(
    x_ptr,
    qweight_ptr,
    scales_ptr,
    zeros_ptr,
    topk_weights_ptr,
    sorted_ids_ptr,
    expert_ids_ptr,
    rows_in_use_ptr,
    out_ptr,
    num_choices,
    N,
    K,
    row_bytes,
    group_bytes,
    groups,
    top_k,
    BASE: tl.constexpr,
    BITS: tl.constexpr,
    WEIGHTED: tl.constexpr,
    WHOLE_PIECES: tl.constexpr,
    TURNED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BYTES: tl.constexpr,
):
    """Multiply one block of choices with some columns of its expert, BYTES of each column at a time."""
    block = tl.program_id(0)
    if block * BLOCK_M >= tl.load(rows_in_use_ptr):
        return
    expert = tl.load(expert_ids_ptr + block).to(tl.int64)
    choices = tl.load(sorted_ids_ptr + block * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    real = choices < num_choices
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    # Padding reads token 0 and columns past the end the last one, in place of masks. Nothing of them is stored.
    some_columns = tl.minimum(columns, N - 1)
    lanes = tl.arange(0, BYTES)
    x_rows = x_ptr + tl.where(real, choices // top_k, 0)[:, None] * K
    qweight_rows = qweight_ptr + (expert * N + some_columns)[:, None] * row_bytes
    of_column = (expert * N + some_columns) * groups
    zero = tl.full((BLOCK_N,), BASE + (1 << (BITS - 1)), scales_ptr.dtype.element_ty)
    acc = tl.zeros((BLOCK_N, BLOCK_M) if TURNED else (BLOCK_M, BLOCK_N), tl.float32)
    pieces = tl.cdiv(group_bytes, BYTES)
    # One loop over all pieces of all groups, so that loads run ahead across groups.
    for piece in range(groups * pieces):
        if TURNED:
            acc = _await_products(acc, piece)
        group = piece // pieces
        within = piece % pieces * BYTES + lanes
        places = group * group_bytes + within
        inside = within < group_bytes
        scale = tl.load(scales_ptr + of_column + group)
        if zeros_ptr is not None:
            zero = tl.load(zeros_ptr + of_column + group)
        if WHOLE_PIECES:
            codes = tl.load(qweight_rows + places[None, :]).to(tl.int16)
            x = tl.load(x_rows + places[None, :])
        else:
            codes = tl.load(qweight_rows + places[None, :], mask=inside[None, :], other=0).to(tl.int16)
            x = tl.load(x_rows + places[None, :], mask=inside[None, :], other=0.0)
        if BITS == 4:
            if WHOLE_PIECES:
                odd = tl.load(x_rows + row_bytes + places[None, :])
            else:
                odd = tl.load(x_rows + row_bytes + places[None, :], mask=inside[None, :], other=0.0)
            low = _as_float(codes & 15, scale, zero, BASE)
            high = _as_float(codes >> 4, scale, zero, BASE)
            acc = _multiply(low, x, acc, TURNED)
            acc = _multiply(high, odd, acc, TURNED)
        else:
            acc = _multiply(_as_float(codes, scale, zero, BASE), x, acc, TURNED)
    if TURNED:
        acc = acc.T
    if WEIGHTED:
        acc *= tl.load(topk_weights_ptr + choices, mask=real, other=0.0)[:, None]
    target = out_ptr + choices[:, None] * N + columns[None, :]
    tl.store(target, acc.to(out_ptr.dtype.element_ty), mask=real[:, None] & (columns < N)[None, :])


def _evens_first(x):
    out = torch.empty_like(x)
    half = x.shape[1] // 2
    _part_even_and_odd[(x.shape[0], triton.cdiv(half, 512))](x, out, half, BLOCK=512)
    return out


def _zeros_as_floats(qzeros, scales, base, bits):
    num_experts, N, groups = scales.shape
    out = torch.empty_like(scales)
    grid = (triton.cdiv(N * groups, 1024), num_experts)
    _widen_zeros[grid](qzeros, out, N, groups, BASE=base, BITS=bits, BLOCK=1024)
    return out


def _base(dtype, bits):
    """Return the power of two whose low mantissa bits hold a code exactly, or 0 if there is none."""
    if dtype == torch.float16:
        return 1024
    return 128 if dtype == torch.bfloat16 and bits == 4 else 0


def fused_moe_gptq_awq(
    x,
    qweight,
    scales,
    qzeros,
    topk_weights,
    sorted_token_ids,
    expert_ids,
    num_tokens_post_padded,
    mul_routed_weight,
    out,
):
    K = x.shape[1]
    _, N, groups = scales.shape
    row_bytes = qweight.shape[2]
    blocks = expert_ids.numel()
    block_m = sorted_token_ids.numel() // blocks
    bits = 4 if row_bytes < K else 8
    if bits == 4:
        x = _evens_first(x)
    group_bytes = row_bytes // groups
    low = block_m <= 32 or x.element_size() == 4
    block_n = 64 if low else 128
    # Few rows are bound by the codes: long stretches of them in flight. More rows leave registers for two programs.
    deepest = 64 if x.element_size() == 2 and (low or bits == 8) else 32
    in_bytes = max(16, min(deepest, triton.next_power_of_2(group_bytes)))
    base = _base(x.dtype, bits)
    zeros = None if qzeros is None else _zeros_as_floats(qzeros, scales, base, bits)
    _quantized_expert_tile[(blocks, triton.cdiv(N, block_n))](
        x,
        qweight,
        scales,
        zeros,
        topk_weights,
        sorted_token_ids,
        expert_ids,
        num_tokens_post_padded,
        out,
        topk_weights.numel(),
        N,
        K,
        row_bytes,
        group_bytes,
        groups,
        topk_weights.shape[1],
        BASE=base,
        BITS=bits,
        WEIGHTED=mul_routed_weight,
        WHOLE_PIECES=group_bytes % in_bytes == 0,
        TURNED=x.element_size() == 2,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BYTES=in_bytes,
        num_warps=4 if low else 8,
        num_stages=2 if torch.version.hip else 4,
    )
