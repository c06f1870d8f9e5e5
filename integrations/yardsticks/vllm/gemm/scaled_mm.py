"""vLLM's scaled product, with the tiles that its wrapper chooses by M and N."""

import triton
import triton.language as tl
from vllm.model_executor.layers.quantization.compressed_tensors.triton_scaled_mm import scaled_mm_kernel


def tiles(m, n):
    rows = max(32, triton.next_power_of_2(m))
    if rows <= 32:
        return (64, 64, 256) if n < 8192 else (64, 128, 256)
    if rows <= 64:
        return 64, 64, 256
    return (64, 128, 128) if rows <= 128 else (128, 128, 128)


def scaled_mm(a, b, a_scales, b_scales, bias, out):
    (m, k), n = a.shape, b.shape[1]
    block_m, block_n, block_k = tiles(m, n)
    scaled_mm_kernel[(triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)](
        a,
        b,
        a_scales,
        b_scales,
        out,
        bias,
        m,
        n,
        k,
        a.stride(0),
        a.stride(1),
        b.stride(0),
        b.stride(1),
        out.stride(0),
        out.stride(1),
        tl.float32 if a.is_floating_point() else tl.int32,
        BLOCK_SIZE_M=block_m,
        BLOCK_SIZE_N=block_n,
        BLOCK_SIZE_K=block_k,
        BLOCK_SIZE_SCALE_A=1 if a_scales.numel() == 1 else block_m,
        BLOCK_SIZE_SCALE_B=1 if b_scales.numel() == 1 else block_n,
    )
