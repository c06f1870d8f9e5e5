"""vLLM's temperature scaling."""

from vllm.v1.worker.gpu.sample.gumbel import apply_temperature


def temperature(logits, temperature, idx_mapping):
    apply_temperature(logits, idx_mapping, temperature)
