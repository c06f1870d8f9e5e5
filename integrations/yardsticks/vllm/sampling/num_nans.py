"""vLLM's count of NaN, with the launch parameters of its wrapper."""

import triton.language.extra.libdevice as libdevice  # noqa: F401 - in place of one of a package of PyTorch
from vllm.v1.worker.gpu.metrics.logits import _num_nans_kernel


def num_nans(logits, num_nans):
    _num_nans_kernel[(logits.shape[0],)](logits, logits.stride(0), num_nans, logits.shape[1], BLOCK_SIZE=8192)
