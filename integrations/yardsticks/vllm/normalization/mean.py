"""vLLM's batch-invariant mean. It adds blocks in the dtype of its input, which may exceed the tolerance."""

from vllm.model_executor.determinism.batch_invariant import mean_kernel


def mean(x, y):
    m, k, n = x.shape
    mean_kernel[(m * n,)](
        x, y, x.stride(0), x.stride(1), x.stride(2), y.stride(0), y.stride(1), m, k, n, BLOCK_SIZE=1024
    )
