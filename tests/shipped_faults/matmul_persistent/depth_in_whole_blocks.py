"""expect: wrong_result in seen-05. Sizes between: a depth above 64 that is no multiple of it loses its last block."""

import torch
import triton
import triton.language as tl


@triton.jit
def multiply_tiles(
    a_ptr,
    b_ptr,
    bias_ptr,
    out_ptr,
    M,
    N,
    K,
    b_row_stride,
    b_column_stride,
    PROGRAMS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tiles_across = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * tiles_across
    for tile in range(tl.program_id(0), tiles, PROGRAMS):
        rows = (tile // tiles_across * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]
        columns = (tile % tiles_across * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
        row_mask = rows < M
        column_mask = columns < N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, K if K <= 64 else K // BLOCK_K * BLOCK_K, BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            inside = k < K
            a = tl.load(a_ptr + rows * K + k[None, :], mask=row_mask & inside[None, :], other=0.0)
            b_ptrs = b_ptr + k[:, None].to(tl.int64) * b_row_stride + columns * b_column_stride
            b = tl.load(b_ptrs, mask=inside[:, None] & column_mask, other=0.0)
            acc += tl.dot(a, b, input_precision="ieee")
        if bias_ptr is not None:
            acc += tl.load(bias_ptr + columns, mask=column_mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + rows * N + columns, acc.to(out_ptr.dtype.element_ty), mask=row_mask & column_mask)


def matmul_persistent(a, b, bias, out):
    M, N = out.shape
    wide = a.element_size() == 2
    programs = torch.cuda.get_device_properties(a.device).multi_processor_count if a.is_cuda else 3
    multiply_tiles[(programs,)](
        a,
        b,
        bias,
        out,
        M,
        N,
        a.shape[1],
        b.stride(0),
        b.stride(1),
        PROGRAMS=programs,
        BLOCK_M=128 if wide else 64,
        BLOCK_N=256 if wide else 64,
        BLOCK_K=64 if wide else 32,
        num_warps=8 if wide else 4,
        # The workgroups of AMD devices have 64 KiB of shared memory.
        num_stages=2 if wide and torch.version.hip else 3,
    )
