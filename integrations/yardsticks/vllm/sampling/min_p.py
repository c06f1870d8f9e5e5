"""vLLM's min-p filter."""

from vllm.v1.worker.gpu.sample.min_p import apply_min_p


def min_p(logits, min_p, idx_mapping):
    apply_min_p(logits, idx_mapping, min_p)
