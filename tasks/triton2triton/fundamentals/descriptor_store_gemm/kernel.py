"""Matrix product through tensor descriptors: one 64 × 64 tile per program; what lies outside of a tensor reads as 0."""

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BLOCK_M, BLOCK_N, BLOCK_K = 64, 64, 32


@triton.jit
def multiply_and_store(
    a_tiles, b_tiles, residual_tiles, out_tiles, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    row = tl.program_id(0) * BLOCK_M
    column = tl.program_id(1) * BLOCK_N
    acc = residual_tiles.load([row, column]).to(tl.float32)
    for k in range(0, K, BLOCK_K):
        a = a_tiles.load([row, k])
        b = b_tiles.load([column, k])
        acc += tl.dot(a, b.T, input_precision="ieee")
    out_tiles.store([row, column], acc.to(out_tiles.dtype))


def descriptor_store_gemm(a, b, residual, out):
    M, K = a.shape
    N = b.shape[0]
    multiply_and_store[(triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))](
        TensorDescriptor.from_tensor(a, [BLOCK_M, BLOCK_K]),
        TensorDescriptor.from_tensor(b, [BLOCK_N, BLOCK_K]),
        TensorDescriptor.from_tensor(residual, [BLOCK_M, BLOCK_N]),
        TensorDescriptor.from_tensor(out, [BLOCK_M, BLOCK_N]),
        K,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_K=BLOCK_K,
    )
