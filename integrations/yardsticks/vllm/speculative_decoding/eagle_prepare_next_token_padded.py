"""vLLM's next tokens of EAGLE."""

import triton
from vllm.v1.spec_decode.utils import eagle_prepare_next_token_padded_kernel


def eagle_prepare_next_token_padded(
    sampled_token_ids, backup_token_ids, discard, vocab_size, next_token_ids, valid_counts
):
    requests, width = sampled_token_ids.shape
    eagle_prepare_next_token_padded_kernel[(requests,)](
        sampled_token_ids,
        discard,
        backup_token_ids,
        next_token_ids,
        valid_counts,
        vocab_size,
        width,
        requests,
        sampled_token_ids.stride(0),
        BLOCK_SIZE_TOKENS=triton.next_power_of_2(width),
    )
