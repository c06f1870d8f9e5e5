"""A linear layer for few rows: long stretches of the weight in flight, and K in parts where columns are too few.

The weight bounds the time, so what counts is how much of it is on its way. The baseline has 32 columns and 32 places of
K a step: 2 KiB of 16-bit weights, of which each row is one request of 64 bytes. Here a step has 128 places, and 64
columns where these make at least 256 programs: 8 or 16 KiB, in rows of 256 bytes, without masks. Two to four programs
fit an H200's multiprocessor, so that each has 48 KiB or more in flight.

Fewer than 256 programs leave multiprocessors with one or none. K is then split until there are 512, and a second launch
adds their sums. Where rows are no whole vectors, latency is hidden by more programs alone, up to 1024. The baseline
multiplies float32 without matrix units on NVIDIA; here it is three products of TF32, in steps of as many bytes. Left to
itself, the compiler splits the rows for them in every warp of every program, which takes twice the instructions that
the weight takes. Here a first launch splits them once, and a weight is split by two instructions.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
ENOUGH_COLUMNS = 256
FEWEST_STEPS = 8


@triton.jit
def _high(x):
    """Return what TF32 holds of x."""
    return (x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)


@triton.jit
def _split(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    """Write (2, size): what TF32 holds of x, and the rest."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place, mask=place < size, other=0.0)
    tl.store(out_ptr + place, _high(x), mask=place < size)
    tl.store(out_ptr + size + place, x - _high(x), mask=place < size)


@triton.jit
def _columns_of_all_rows(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    parts_ptr,
    weight_row_stride,
    weight_column_stride,
    M,
    N,
    K,
    part_depth,
    WHOLE_BLOCKS: tl.constexpr,
    SPLIT: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Multiply all rows with some columns over one part of K. With SPLIT, x is (2, M, K): two parts of TF32."""
    m = tl.arange(0, ROWS)
    n = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    begin = tl.program_id(1) * part_depth
    end = tl.minimum(begin + part_depth, K)
    k = tl.arange(0, DEPTH)
    x_at = x_ptr + m[:, None] * K + begin + k[None, :]
    # Columns beyond the end begin again, which needs no mask. They are not stored.
    columns = (n % N).to(tl.int64)[None, :] * weight_row_stride
    weight_at = weight_ptr + columns + (begin + k).to(tl.int64)[:, None] * weight_column_stride
    step = DEPTH * weight_column_stride
    acc = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(begin, end, DEPTH):
        inside = (m < M)[:, None] if WHOLE_BLOCKS else (m < M)[:, None] & (k < end - start)[None, :]
        x = tl.load(x_at, mask=inside, other=0.0)
        if WHOLE_BLOCKS:
            weight = tl.load(weight_at)
        else:
            weight = tl.load(weight_at, mask=(k < end - start)[:, None], other=0.0)
        if SPLIT:
            rest = tl.load(x_at + M * K, mask=inside, other=0.0)
            high = _high(weight)
            acc = tl.dot(rest, high, acc, input_precision="tf32")
            acc = tl.dot(x, weight - high, acc, input_precision="tf32")
            acc = tl.dot(x, high, acc, input_precision="tf32")
        else:
            acc = tl.dot(x, weight, acc, input_precision=PRECISION)
        x_at += DEPTH
        weight_at += step
    inside = (m < M)[:, None] & (n < N)[None, :]
    places = m.to(tl.int64)[:, None] * N + n[None, :]
    if parts_ptr is None:
        if bias_ptr is not None:
            acc += tl.load(bias_ptr + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
        tl.store(out_ptr + places, acc.to(out_ptr.dtype.element_ty), mask=inside)
    else:
        tl.store(parts_ptr + tl.program_id(1).to(tl.int64) * M * N + places, acc, mask=inside)


@triton.jit
def _add_parts(parts_ptr, bias_ptr, out_ptr, N, size, parts, BLOCK: tl.constexpr):
    """Add the sums of all parts of K, and the bias, for a block of results."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < size
    acc = tl.zeros((BLOCK,), tl.float32)
    for part in range(parts):
        acc += tl.load(parts_ptr + tl.cast(part, tl.int64) * size + places, mask=inside, other=0.0)
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + places % N, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + places, acc.to(out_ptr.dtype.element_ty), mask=inside)


def _tile(N, rows, item_bytes, odd):
    """Return columns, depth, stages and the number of programs that are enough."""
    if odd:
        return 64, 128 // item_bytes, 2, 1024
    columns = 32 if rows == 16 and triton.cdiv(N, 64) < ENOUGH_COLUMNS else 64
    # 48 to 96 KiB of shared memory a program: products of fewer than 64 rows have a buffer less than stages.
    return columns, 256 // item_bytes, 3 if rows == 64 else (5 if columns == 32 else 4), 512


def small_m_gemm_dot(x, weight, bias, out):
    M, K = x.shape
    N = weight.shape[0]
    rows = max(16, triton.next_power_of_2(M))
    odd = K % 16 != 0 if weight.stride(1) == 1 else N % 16 != 0
    columns, depth, num_stages, enough = _tile(N, rows, x.element_size(), odd)
    programs, steps, parts = triton.cdiv(N, columns), triton.cdiv(K, depth), 1
    if programs < ENOUGH_COLUMNS or enough > 512:
        parts = max(1, min(enough // programs, steps // FEWEST_STEPS))
    part_depth = triton.cdiv(steps, parts) * depth
    parts = triton.cdiv(K, part_depth)
    split = x.element_size() == 4 and not torch.version.hip
    if split:
        x, whole = torch.empty((2, M, K), dtype=x.dtype, device=x.device), x
        _split[(triton.cdiv(M * K, 1024),)](whole, x, M * K, BLOCK=1024)
    sums = None
    if parts > 1:
        sums = torch.empty((parts, M, N), dtype=torch.float32, device=x.device)
    _columns_of_all_rows[(programs, parts)](
        x,
        weight,
        bias,
        out,
        sums,
        *weight.stride(),
        M,
        N,
        K,
        part_depth,
        WHOLE_BLOCKS=K % depth == 0,
        SPLIT=split,
        ROWS=rows,
        COLUMNS=columns,
        DEPTH=depth,
        num_warps=4,
        # AMD devices have 64 KiB of shared memory.
        num_stages=2 if torch.version.hip else num_stages,
    )
    if parts > 1:
        block = 256 if M * N < 262144 else 1024
        _add_parts[(triton.cdiv(M * N, block),)](sums, bias, out, N, M * N, parts, BLOCK=block)
