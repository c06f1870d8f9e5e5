"""Decode attention over a paged cache (Kwon et al., 2023) with grouped queries (Ainslie et al., 2023)."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Lengths: all the greatest; or, in a ragged case, one the greatest and the others random."""
    shape, most = (count, case["batch"]), case["seq_len"]
    least = 1 if case["ragged"] else most
    lens = torch.randint(least, most + 1, shape, generator=generator, device=generator.device)
    longest = torch.randint(0, shape[1], (count, 1), generator=generator, device=generator.device)
    return {"seq_lens": lens.scatter(1, longest, most)}


def reference(
    query: torch.Tensor, kv_cache: torch.Tensor, block_table: torch.Tensor, seq_lens: torch.Tensor
) -> torch.Tensor:
    """query, out: (batch, num_heads, head_dim); kv_cache: (num_blocks, page_size, num_kv_heads, 2 * head_dim)."""
    batch, heads, size = query.shape
    wide = torch.promote_types(query.dtype, torch.float32)
    pages = kv_cache[block_table.long()].flatten(1, 2).to(wide)
    key, value = pages.split(size, dim=-1)
    grouped = query.to(wide).view(batch, key.shape[2], -1, size)
    scores = torch.einsum("bhgd,bthd->bhgt", grouped, key) / size**0.5
    absent = torch.arange(key.shape[1], device=query.device) >= seq_lens[:, None]
    weights = scores.masked_fill(absent[:, None, None], -torch.inf).softmax(dim=-1)
    return torch.einsum("bhgt,bthd->bhgd", weights, value).reshape(batch, heads, size)
