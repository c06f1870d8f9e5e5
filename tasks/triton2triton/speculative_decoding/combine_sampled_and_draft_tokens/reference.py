"""The next step's inputs from sampled and drafted tokens."""

from typing import Any

import torch

from arena.semantics.ragged import owners


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """One logit for each request, the others where there is room; places beyond the logits anywhere."""
    device, reqs, most = generator.device, case["num_reqs"], case["max_spec_len"]

    def offsets(chosen: torch.Tensor, least: torch.Tensor) -> torch.Tensor:
        lengths = least.scatter_add(1, chosen, torch.ones_like(chosen))
        return torch.cat([torch.zeros_like(lengths[:, :1]), lengths.cumsum(dim=-1)], dim=-1)

    keys = torch.rand(count, reqs * most, generator=generator, device=device)
    taken = keys.argsort(dim=-1)[:, : case["num_logits"] - reqs] // most
    cu_num_logits = offsets(taken, torch.ones(count, reqs, dtype=torch.int64, device=device))
    spare = case["num_tokens"] - case["num_logits"]
    extra = torch.randint(0, reqs, (count, spare), generator=generator, device=device)
    return {"cu_num_logits": cu_num_logits, "cu_seqlens": offsets(extra, cu_num_logits.diff(dim=-1))}


def reference(
    input_ids: torch.Tensor,
    last_sampled_tokens: torch.Tensor,
    draft_token_ids: torch.Tensor,
    cu_seqlens: torch.Tensor,
    cu_num_logits: torch.Tensor,
    seq_lens: torch.Tensor,
    prefill_lens: torch.Tensor,
    idx_mapping: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """logits_indices: (num_logits,); input_ids: (num_tokens,); draft_token_ids: (num_slots, max_spec_len)."""
    reqs, slots = owners(cu_num_logits), idx_mapping.long()
    within = torch.arange(len(reqs), device=reqs.device) - cu_num_logits[reqs]
    places = cu_seqlens[reqs + 1] - cu_num_logits.diff()[reqs] + within
    tokens = torch.cat([last_sampled_tokens[:, None], draft_token_ids], dim=1)[slots[reqs], within]
    decoding = (seq_lens > prefill_lens[slots])[reqs]
    input_ids[places[decoding]] = tokens[decoding].int()
    return places.long(), input_ids
