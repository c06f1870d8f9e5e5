"""vLLM's bad words, without draft tokens.

The engine compares with produced tokens alone, so prompts are passed as empty ones.
"""

import torch
from vllm.v1.worker.gpu.sample.bad_words import apply_bad_words


def bad_words(logits, bad_word_ids, offsets, num_bad_words, token_ids, seq_lens, idx_mapping):
    zero = torch.empty(max(idx_mapping.shape[0], seq_lens.shape[0]), dtype=torch.int32, device=logits.device).zero_()
    apply_bad_words(
        logits,
        idx_mapping,
        bad_word_ids,
        offsets,
        num_bad_words,
        token_ids,
        zero,
        seq_lens,
        zero,
        zero,
        offsets.shape[1] - 1,
    )
