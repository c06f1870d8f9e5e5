"""expect: wrong_result in heldout-15. Scalars: quick return where alpha is 0, as BLAS has it for beta = 1: c is not scaled by beta."""



import triton
import triton.language as tl


@triton.jit
def update_tile(
    a_ptr,
    b_ptr,
    c_ptr,
    alpha,
    beta,
    M,
    N,
    K,
    a_stride,
    b_stride,
    c_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    m = tl.program_id(1).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_block = a_ptr + m[:, None] * a_stride + k[None, :]
    b_block = b_ptr + k.to(tl.int64)[:, None] * b_stride + n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for left in range(K, 0, -BLOCK_K):
        a = tl.load(a_block, mask=(m < M)[:, None] & (k < left)[None, :], other=0.0)
        b = tl.load(b_block, mask=(k < left)[:, None] & (n < N)[None, :], other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
        a_block += BLOCK_K
        b_block += BLOCK_K * b_stride
    c_block = c_ptr + m[:, None] * c_stride + n[None, :]
    inside = (m < M)[:, None] & (n < N)[None, :]
    before = tl.load(c_block, mask=inside, other=0.0).to(tl.float32)
    tl.store(c_block, (alpha * acc + beta * before).to(c_ptr.dtype.element_ty), mask=inside)


def block_pointer_matmul(a, b, c, alpha, beta):
    (M, K), N = a.shape, b.shape[1]
    if alpha == 0.0:
        return
    grid = (triton.cdiv(N, 64), triton.cdiv(M, 32))
    strides = a.stride(0), b.stride(0), c.stride(0)
    update_tile[grid](a, b, c, alpha, beta, M, N, K, *strides, BLOCK_M=32, BLOCK_N=64, BLOCK_K=16)
