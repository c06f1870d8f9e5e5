"""Greedy speculative decoding (Leviathan et al., 2023, at temperature 0): the longest prefix that agrees."""

from typing import Any

import torch

from arena.semantics.ragged import owners


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Drafts of which four in five are the target's token; of each request's places, num_draft_tokens are taken.

    Half of the wrong ones differ from it in their upper bits alone.
    """
    device, tokens = generator.device, case["num_draft_tokens"]
    reqs, most = case["num_reqs"], case["max_spec_len"]
    drafts = torch.randint(0, 128256, (2, count, tokens), generator=generator, device=device)
    wrong = torch.where(drafts[1] % 2 == 0, drafts[0] ^ 65536, drafts[1])
    same = torch.rand(count, tokens, generator=generator, device=device) < 0.8
    keys = torch.rand(count, reqs * most, generator=generator, device=device)
    taken = keys.argsort(dim=-1)[:, :tokens] // most
    lengths = torch.zeros(count, reqs + 1, dtype=torch.int64, device=device)
    lengths.scatter_add_(1, taken + 1, torch.ones_like(taken))
    return {
        "draft_token_ids": drafts[0],
        "target_token_ids": torch.where(same, drafts[0], wrong),
        "cu_num_draft_tokens": lengths.cumsum(dim=-1),
    }


def reference(
    draft_token_ids: torch.Tensor,
    target_token_ids: torch.Tensor,
    bonus_token_ids: torch.Tensor,
    cu_num_draft_tokens: torch.Tensor,
    is_greedy: torch.Tensor | None,
    output_token_ids: torch.Tensor,
) -> torch.Tensor:
    """draft and target tokens: (num_draft_tokens,); output_token_ids: (num_reqs, max_spec_len + 1)."""
    cu, reqs = cu_num_draft_tokens.long(), owners(cu_num_draft_tokens)
    lengths = cu.diff()
    places = torch.arange(len(reqs), device=reqs.device) - cu[reqs]
    differs = torch.where(draft_token_ids == target_token_ids, lengths[reqs], places)
    first = lengths.scatter_reduce(0, reqs, differs, "amin")[:, None]
    columns = torch.arange(output_token_ids.shape[1], device=reqs.device)
    source = (cu[:-1, None] + columns).clamp(max=len(reqs) - 1)
    tokens = torch.where(columns < lengths[:, None], target_token_ids[source], bonus_token_ids[:, None])
    rows = torch.where(columns <= first, tokens, -1).int()
    return rows if is_greedy is None else torch.where(is_greedy[:, None], rows, output_token_ids)
