"""expect: wrong_result in heldout-20. Scalar value: scales below the least that dynamic quantization gives are raised.

SwiGLU and static fp8 quantization: a program per 512 values of a row.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def activate_block(x_ptr, scales_ptr, q_ptr, x_stride, N, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < N
    gate_ptrs = x_ptr + row * x_stride + columns
    gate = tl.load(gate_ptrs, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(gate_ptrs + N, mask=inside, other=0.0).to(tl.float32)
    # No quantizer gives a scale below this one; a scale of 0, of a layer never used, must not make infinities.
    scale = tl.maximum(tl.load(scales_ptr), 1.0 / (448.0 * 512.0))
    scaled = gate / (1.0 + tl.exp(-gate)) * up / scale
    codes = tl.minimum(tl.maximum(scaled, -LARGEST), LARGEST)
    tl.store(q_ptr + row * N + columns, codes.to(q_ptr.dtype.element_ty), mask=inside)


def silu_mul_quant_fp8(x, scales, q):
    M, N = q.shape
    grid = (M, triton.cdiv(N, 512))
    activate_block[grid](x, scales, q, x.stride(0), N, LARGEST=torch.finfo(q.dtype).max, BLOCK=512)
