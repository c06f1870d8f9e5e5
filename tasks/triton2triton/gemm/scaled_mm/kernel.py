"""Product of quantized matrices: a tile of results per program, scaled at the end. Few rows make a lower tile."""

import torch
import triton
import triton.language as tl


@triton.jit
def multiply_tile(
    a_ptr,
    b_ptr,
    a_scales_ptr,
    b_scales_ptr,
    bias_ptr,
    out_ptr,
    M,
    N,
    K,
    a_scale_step,
    b_scale_step,
    WIDEN: tl.constexpr,
    SUM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = (tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    columns = (tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    row_mask = rows < M
    column_mask = columns < N
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=SUM)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        inside = k < K
        a = tl.load(a_ptr + rows * K + k[None, :], mask=row_mask & inside[None, :], other=0.0)
        b = tl.load(b_ptr + columns * K + k[:, None], mask=inside[:, None] & column_mask, other=0.0)
        if WIDEN:
            a, b = a.to(tl.float16), b.to(tl.float16)
        # A product is added here, not by the unit, so that each sum of fp8 products is short.
        acc += tl.dot(a, b)
    a_scales = tl.load(a_scales_ptr + rows * a_scale_step, mask=row_mask, other=0.0)
    b_scales = tl.load(b_scales_ptr + columns * b_scale_step, mask=column_mask, other=0.0)
    result = acc.to(tl.float32) * a_scales * b_scales
    if bias_ptr is not None:
        result += tl.load(bias_ptr + columns, mask=column_mask, other=0.0)
    tl.store(out_ptr + rows * N + columns, result.to(out_ptr.dtype.element_ty), mask=row_mask & column_mask)


def scaled_mm(a, b, a_scales, b_scales, bias, out):
    M, N = out.shape
    is_int8 = a.dtype == torch.int8
    # Units that multiply fp8 may add up in fewer bits than a float32 output shows. float16 holds every e4m3 number.
    widen = not is_int8 and out.dtype == torch.float32
    # One scale for all is read again and again from the same place.
    a_scale_step = 0 if a_scales.numel() == 1 else 1
    b_scale_step = 0 if b_scales.numel() == 1 else 1
    block_m = min(128, max(16, triton.next_power_of_2(M)))
    multiply_tile[(triton.cdiv(M, block_m), triton.cdiv(N, 128))](
        a,
        b,
        a_scales,
        b_scales,
        bias,
        out,
        M,
        N,
        a.shape[1],
        a_scale_step,
        b_scale_step,
        WIDEN=widen,
        SUM=tl.int32 if is_int8 else tl.float32,
        BLOCK_M=block_m,
        BLOCK_N=128,
        BLOCK_K=64 if widen else 128,
        num_warps=8 if block_m == 128 else 4,
    )
