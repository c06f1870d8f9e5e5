"""vLLM's block-scaled fp8 product with the configuration that its wrapper takes where none is tuned.

The engine's tiles are as wide as the blocks of scales.
"""

import triton
from vllm.model_executor.layers.quantization.utils.fp8_utils import _w8a8_triton_block_scaled_mm


def w8a8_block_scaled_mm(a, b, a_scales, b_scales, block_n, block_k, out):
    (m, k), n = a.shape, b.shape[0]
    _w8a8_triton_block_scaled_mm[(triton.cdiv(m, 64) * triton.cdiv(n, block_n),)](
        a,
        b,
        out,
        a_scales,
        b_scales,
        m,
        n,
        k,
        block_n,
        block_k,
        a.stride(0),
        a.stride(1),
        b.stride(1),
        b.stride(0),
        out.stride(0),
        out.stride(1),
        a_scales.stride(0),
        a_scales.stride(1),
        b_scales.stride(1),
        b_scales.stride(0),
        BLOCK_SIZE_M=64,
        BLOCK_SIZE_N=block_n,
        BLOCK_SIZE_K=block_k,
        GROUP_SIZE_M=32,
        num_warps=4,
        num_stages=2,
    )
