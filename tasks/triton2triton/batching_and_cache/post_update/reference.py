"""State of the requests after a step, with all requests at once and one sampled place after the other."""

import torch


def reference(
    sampled_token_ids: torch.Tensor,
    num_sampled: torch.Tensor,
    num_rejected: torch.Tensor,
    cu_seqlens: torch.Tensor,
    idx_mapping: torch.Tensor,
    num_computed_tokens: torch.Tensor,
    last_sampled_tokens: torch.Tensor,
    output_counts: torch.Tensor,
    token_ids: torch.Tensor,
    seq_lens: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    """sampled_token_ids: (num_reqs, max_sampled); state: (num_slots,) or (num_slots, vocab_size or max_len)."""
    slots = idx_mapping.long()
    for place in range(sampled_token_ids.shape[1]):
        active = num_sampled > place
        slot, token = slots[active], sampled_token_ids[active, place]
        output_counts[slot, token.long()] += 1
        token_ids[slot, seq_lens[slot].long() + place] = token
        last_sampled_tokens[slot] = token
    seq_lens[slots] += num_sampled
    num_computed_tokens[slots] += cu_seqlens.diff() - num_rejected
    return num_computed_tokens, last_sampled_tokens, output_counts, token_ids, seq_lens
