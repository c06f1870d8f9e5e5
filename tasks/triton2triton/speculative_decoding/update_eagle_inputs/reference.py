"""EAGLE's further draft steps (Li et al., 2024)."""

import torch


def reference(
    draft_token_ids: torch.Tensor,
    output_hidden_states: torch.Tensor,
    input_ids: torch.Tensor,
    hidden_states: torch.Tensor,
    positions: torch.Tensor,
    seq_lens: torch.Tensor,
    max_model_len: int,
) -> tuple[torch.Tensor, ...]:
    """hidden_states: (max_num_reqs, hidden); input_ids, positions, seq_lens: (max_num_reqs,); in call order."""
    used = slice(0, len(draft_token_ids))
    input_ids[used] = draft_token_ids.int()
    hidden_states[used] = output_hidden_states
    positions[used] = (positions[used] + 1).clamp(max=max_model_len - 1)
    seq_lens[used] = (seq_lens[used] + 1).clamp(max=max_model_len)
    return input_ids, hidden_states, positions, seq_lens
