"""vLLM's clamped activation."""

from vllm.model_executor.layers.activation import swiglustep_and_mul_triton


def swiglustep_and_mul(x, limit, out):
    swiglustep_and_mul_triton(out, x, limit)
