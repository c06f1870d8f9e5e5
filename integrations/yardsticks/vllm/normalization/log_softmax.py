"""vLLM's batch-invariant log-softmax. It computes in the dtype of its input, which Triton allows for float32 only."""

from vllm.model_executor.determinism.batch_invariant import _softmax_kernel


def log_softmax(x, y):
    rows, columns = x.shape
    _softmax_kernel[(rows,)](x, y, x.stride(0), x.stride(1), y.stride(0), columns, BLOCK_SIZE=1024, LOG=True)
