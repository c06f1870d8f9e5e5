"""vLLM's penalties, without draft tokens: every request is at its local position 0."""

import torch
from vllm.v1.worker.gpu.sample.penalties import apply_penalties


def penalties(
    logits, repetition_penalty, frequency_penalty, presence_penalty, prompt_bitmask, output_counts, idx_mapping
):
    position = torch.empty_like(idx_mapping).zero_()
    apply_penalties(
        logits,
        idx_mapping,
        idx_mapping,
        position,
        repetition_penalty,
        frequency_penalty,
        presence_penalty,
        prompt_bitmask,
        output_counts,
    )
