"""vLLM's batch-invariant persistent product, with its default tiles on GPUs with 100 KiB of shared memory."""

import torch
import triton
from vllm.model_executor.determinism.batch_invariant import matmul_kernel_persistent


def matmul_persistent(a, b, bias, out):
    (m, k), n = a.shape, b.shape[1]
    units = torch.cuda.get_device_properties(a.device).multi_processor_count if a.is_cuda else 4
    columns = 256 if a.dtype == torch.float16 else 128
    matmul_kernel_persistent[(min(units, triton.cdiv(m, 128) * triton.cdiv(n, columns)),)](
        a,
        b,
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
        1 if bias is None else bias.stride(0),
        NUM_SMS=units,
        A_LARGE=False,
        B_LARGE=False,
        C_LARGE=False,
        HAS_BIAS=bias is not None,
        BLOCK_SIZE_M=128,
        BLOCK_SIZE_N=columns,
        BLOCK_SIZE_K=32 if a.dtype == torch.float32 else 64,
        GROUP_SIZE_M=8,
        num_stages=3,
        num_warps=8,
    )
