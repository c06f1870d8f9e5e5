"""vLLM's product with AWQ weights, K split in 8 as its layer does. A kernel of ours adds the parts.

The engine accumulates in the dtype of its output, which may exceed the tolerance.
"""

import torch
import triton
import triton.language as tl
from vllm.model_executor.layers.quantization.awq_triton import awq_gemm_kernel


@triton.jit
def add_parts(parts, out, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in range(PARTS):
        total += tl.load(parts + part * n + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(out + i, total, mask=i < n)


def awq_gemm(a, qweight, scales, qzeros, out):
    (m, k), n = a.shape, out.shape[1]
    parts = torch.empty((8, m, n), dtype=out.dtype, device=out.device)
    awq_gemm_kernel[(triton.cdiv(m, 32) * triton.cdiv(n, 32), 8)](
        a,
        qweight,
        parts,
        qzeros,
        scales,
        m,
        n,
        k,
        k // scales.shape[0],
        BLOCK_SIZE_M=32,
        BLOCK_SIZE_N=32,
        BLOCK_SIZE_K=32,
        SPLIT_K=8,
    )
    add_parts[(triton.cdiv(m * n, 1024),)](parts, out, m * n, 8, 1024)
