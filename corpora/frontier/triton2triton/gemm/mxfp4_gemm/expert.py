"""Matrix product in MXFP4: x is quantized once, with even and odd columns apart, so that no codes have to alternate.

Bytes of the weight have an even and an odd column each: their low halves multiply the even columns of x, their high
halves the odd ones. The four bits of a code become the top bits of a float32, whose exponent a multiplication mends.
Few tiles are split along K, and a last kernel adds the parts.
"""

import torch
import triton
import triton.language as tl

PROGRAMS = 396


@triton.jit
def _quantize(x_ptr, q_ptr, total_groups, row_groups, K, GROUPS: tl.constexpr):
    """Rows of q have the quantized even columns first, then the odd ones."""
    groups = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    present = (groups < total_groups)[:, None]
    x = tl.load(x_ptr + groups[:, None] * 32 + tl.arange(0, 32)[None, :], mask=present, other=0.0).to(tl.float32)
    largest = tl.max(tl.abs(x), axis=1)
    exponents = tl.maximum((largest.to(tl.int32, bitcast=True) >> 23) - 2, 1)
    power = (exponents << 23).to(tl.float32, bitcast=True)[:, None]
    v = tl.abs(x) * ((254 - exponents) << 23).to(tl.float32, bitcast=True)[:, None]
    # The distance between neighbours: a sum with 1.5 * 2 ** 23 times that is rounded to one of them, ties to even.
    distance = tl.where(v < 2.0, 0.5, tl.where(v < 4.0, 1.0, 2.0))
    shift = distance * 12582912.0
    number = tl.minimum((v + shift) - shift, 6.0)
    q = (tl.where(x < 0, -number, number) * power).to(q_ptr.dtype.element_ty)
    even, odd = tl.split(tl.reshape(q, (GROUPS, 16, 2)))
    rows, places = groups // row_groups, groups % row_groups
    out = q_ptr + (rows * K + places * 16)[:, None] + tl.arange(0, 16)[None, :]
    tl.store(out, even, mask=present)
    tl.store(out + K // 2, odd, mask=present)


@triton.jit
def _numbers(codes, power, ROWS: tl.constexpr, PAIRS: tl.constexpr):
    bits = ((codes & 8) << 28) | ((codes & 7) << 22)
    # 2 ** 126 is what the exponents of float32 and e2m1 differ by; 0.5 is subnormal in both.
    values = bits.to(tl.float32, bitcast=True) * 8.507059173023462e37
    scaled = tl.reshape(values, (ROWS, PAIRS // 16, 16)) * power[:, :, None]
    return tl.reshape(scaled, (ROWS, PAIRS)).to(tl.bfloat16)


@triton.jit
def _multiply_part(
    q_ptr,
    qweight_ptr,
    scales_ptr,
    out_ptr,
    M,
    N,
    K,
    pairs_of_part,
    SPLIT: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    PAIRS: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    part = tl.program_id(2)
    in_rows, in_columns = rows < M, columns < N
    # What lies outside reads the last row: nothing of it is stored.
    q_rows, w_rows = tl.minimum(rows, M - 1), tl.minimum(columns, N - 1)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    first = part * pairs_of_part
    end = tl.minimum(first + pairs_of_part, K // 2)
    for start in range(first, end, PAIRS):
        pairs = start + tl.arange(0, PAIRS)
        inside = (pairs < end)[None, :]
        q_ptrs = q_ptr + q_rows[:, None] * K + pairs[None, :]
        even = tl.load(q_ptrs, mask=inside, other=0.0)
        odd = tl.load(q_ptrs + K // 2, mask=inside, other=0.0)
        packed = tl.load(qweight_ptr + w_rows[:, None] * (K // 2) + pairs[None, :], mask=inside, other=0)
        groups = start // 16 + tl.arange(0, PAIRS // 16)
        scale_ptrs = scales_ptr + w_rows[:, None] * (K // 32) + groups[None, :]
        scales = tl.load(scale_ptrs, mask=(groups < K // 32)[None, :], other=127)
        power = (scales.to(tl.int32) << 23).to(tl.float32, bitcast=True)
        codes = packed.to(tl.int32)
        acc = tl.dot(even, _numbers(codes & 15, power, BLOCK_N, PAIRS).T, acc)
        acc = tl.dot(odd, _numbers(codes >> 4, power, BLOCK_N, PAIRS).T, acc)
    mask = in_rows[:, None] & in_columns[None, :]
    places = rows[:, None] * N + columns[None, :]
    if SPLIT:
        tl.store(out_ptr + tl.cast(part, tl.int64) * M * N + places, acc, mask=mask)
    else:
        tl.store(out_ptr + places, acc.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _add_parts(parts_ptr, out_ptr, size, parts, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < size
    total = tl.zeros((BLOCK,), tl.float32)
    for part in range(parts):
        total += tl.load(parts_ptr + tl.cast(part, tl.int64) * size + places, mask=inside, other=0.0)
    tl.store(out_ptr + places, total.to(out_ptr.dtype.element_ty), mask=inside)


def mxfp4_gemm(x, qweight, scales, out):
    M, N = out.shape
    K = x.shape[1]
    q = torch.empty((M, K), dtype=torch.bfloat16, device=x.device)
    total_groups = M * K // 32
    _quantize[(triton.cdiv(total_groups, 32),)](x, q, total_groups, K // 32, K, GROUPS=32, num_warps=4)
    if M <= 64:
        height = max(16, triton.next_power_of_2(M))
        width, pairs, warps = 64, 64, 4
    else:
        height, width, pairs, warps = 128, 128, 32, 8
    grid = (triton.cdiv(M, height), triton.cdiv(N, width))
    steps = triton.cdiv(K // 2, pairs)
    # Parts of at least four steps, as many as fill the GPU, and not for outputs that cost more to add than to make.
    parts = max(1, min(PROGRAMS // (grid[0] * grid[1]), steps // 4, 16))
    pairs_of_part = triton.cdiv(steps, parts) * pairs
    parts = triton.cdiv(K // 2, pairs_of_part)
    sums = torch.empty((parts, M, N), dtype=torch.float32, device=x.device) if parts > 1 else out
    _multiply_part[(*grid, parts)](
        q,
        qweight,
        scales,
        sums,
        M,
        N,
        K,
        pairs_of_part,
        SPLIT=parts > 1,
        BLOCK_M=height,
        BLOCK_N=width,
        PAIRS=pairs,
        num_warps=warps,
        num_stages=3,
    )
    if parts > 1:
        _add_parts[(triton.cdiv(M * N, 256),)](sums, out, M * N, parts, BLOCK=256, num_warps=2)
