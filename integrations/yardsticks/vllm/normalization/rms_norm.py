"""vLLM's batch-invariant RMS norm: its only one in Triton; by default it calls a CUDA kernel."""

from vllm.model_executor.determinism.batch_invariant import _rms_norm_kernel


def rms_norm(x, weight, eps, y):
    _rms_norm_kernel[(x.shape[0],)](
        x, weight, y, x.stride(0), y.stride(0), x.shape[1], eps, BLOCK_SIZE=1024, HAS_WEIGHT=True
    )
