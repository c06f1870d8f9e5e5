"""Speculative decoding (Leviathan et al., 2023) with drafts that are compared with sampled tokens."""

from typing import Any

import torch

from arena.semantics.ragged import owners


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """One place for each request, and more among max_spec_len others; four in five inputs follow the target.

    Half of the wrong ones differ from it in their upper bits alone.
    """
    device, tokens = generator.device, case["num_logits"]
    reqs, most = case["num_reqs"], case["max_spec_len"]
    target = torch.randint(0, 128256, (count, tokens), generator=generator, device=device)
    other = torch.randint(0, 128256, (count, tokens), generator=generator, device=device)
    followed = target.roll(1, dims=-1)
    same = torch.rand(count, tokens, generator=generator, device=device) < 0.8
    keys = torch.rand(count, reqs * most, generator=generator, device=device)
    taken = keys.argsort(dim=-1)[:, : tokens - reqs] // most
    lengths = torch.ones(count, reqs + 1, dtype=torch.int64, device=device)
    lengths[:, 0] = 0
    lengths.scatter_add_(1, taken + 1, torch.ones_like(taken))
    return {
        "input_ids": torch.where(same, followed, torch.where(other % 2 == 0, followed ^ 65536, other)),
        "target_token_ids": target,
        "cu_num_logits": lengths.cumsum(dim=-1),
    }


def reference(
    input_ids: torch.Tensor, target_token_ids: torch.Tensor, cu_num_logits: torch.Tensor, max_spec_len: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """input_ids, target_token_ids: (num_logits,); sampled: (num_reqs, max_spec_len + 1); num_sampled: (num_reqs,)."""
    cu, reqs = cu_num_logits.long(), owners(cu_num_logits)
    lengths = cu.diff()
    places = torch.arange(len(reqs), device=reqs.device) - cu[reqs]
    right = (places == 0) | (input_ids == target_token_ids.roll(1))
    num_sampled = lengths.scatter_reduce(0, reqs, torch.where(right, lengths[reqs], places), "amin")
    columns = torch.arange(max_spec_len + 1, device=reqs.device)
    source = (cu[:-1, None] + columns).clamp(max=len(reqs) - 1)
    return torch.where(columns < num_sampled[:, None], target_token_ids[source], -1), num_sampled.int()
