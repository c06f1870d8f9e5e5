"""EAGLE's second draft step (Li et al., 2024): one token and one hidden state for each request."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """last_token_indices: num_reqs of the places, in ascending order."""
    keys = torch.rand(count, case["num_tokens"], generator=generator, device=generator.device, dtype=torch.float64)
    return {"last_token_indices": keys.argsort(dim=-1)[:, : case["num_reqs"]].sort(dim=-1).values}


def reference(
    draft_token_ids: torch.Tensor,
    output_hidden_states: torch.Tensor,
    target_positions: torch.Tensor,
    target_seq_lens: torch.Tensor,
    num_rejected: torch.Tensor,
    last_token_indices: torch.Tensor,
    max_model_len: int,
    max_num_reqs: int,
) -> tuple[torch.Tensor, ...]:
    """Returns input_ids and positions: (num_reqs,); hidden states: (num_reqs, hidden); seq_lens."""
    num_reqs = len(draft_token_ids)
    positions = (target_positions[last_token_indices] + 1).clamp(max=max_model_len - 1)
    seq_lens = target_seq_lens.new_zeros(max_num_reqs)
    seq_lens[:num_reqs] = (target_seq_lens - num_rejected + 1).clamp(max=max_model_len)
    return draft_token_ids.int(), positions, output_hidden_states[last_token_indices], seq_lens
