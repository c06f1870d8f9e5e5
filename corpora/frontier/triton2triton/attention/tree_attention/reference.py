"""Tree attention (Miao et al., SpecInfer, 2024) over a paged context, as EAGLE-2 (Li et al., 2024) verifies drafts."""

from typing import Any

import torch

from arena.semantics.paged import tokens_at, unread_places
from arena.semantics.ragged import at_once


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """context_lens, one of several min_context, and trees: each node hangs on an earlier one, often on a late one."""
    device, size = generator.device, case["tree_len"]
    shape = (count, case["num_seqs"])
    lengths = torch.randint(case["min_context"], case["max_context"] + 1, shape, generator=generator, device=device)
    if shape[1] > 1:
        shortest = torch.randint(0, shape[1], (count, 1), generator=generator, device=device)
        lengths = lengths.scatter(1, shortest, case["min_context"])
    nodes = torch.arange(size, device=device)
    share = torch.rand((*shape, size), generator=generator, device=device, dtype=torch.float64).sqrt()
    parents = (share * nodes).long()
    mask = torch.eye(size, dtype=torch.bool, device=device).expand(*shape, size, size).clone()
    for node in range(1, size):
        mask[:, :, node] |= mask.gather(2, parents[:, :, node, None, None].expand(*shape, 1, size))[:, :, 0]
    return {"tree_mask": mask, "context_lens": lengths}


def unread(
    block_table: torch.Tensor, context_lens: torch.Tensor, num_blocks: int, block_size: int
) -> dict[str, torch.Tensor]:
    """Places of the caches that hold no token of a context. context_lens: (count, num_seqs)."""
    return unread_places(block_table, context_lens, num_blocks, block_size)


def reference(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    tree_mask: torch.Tensor,
    block_table: torch.Tensor,
    context_lens: torch.Tensor,
    sm_scale: float,
) -> torch.Tensor:
    """query, out: (num_seqs * tree_len, num_heads, head_dim); key, value: (num_seqs * tree_len, num_kv_heads, …)."""
    num_seqs, size, _ = tree_mask.shape
    num_heads, head_dim = query.shape[1:]
    kv_heads = key.shape[1]
    steps = torch.arange(max(1, int(context_lens.max())), device=query.device)
    outs = []
    query, key, value = (x.unflatten(0, (num_seqs, size)) for x in (query, key, value))
    rows = at_once((len(steps) + size) * (4 * kv_heads * head_dim + 4 * size * num_heads))
    for seqs in torch.arange(num_seqs, device=query.device).split(rows):
        lengths = context_lens[seqs, None]
        places = torch.where(steps < lengths, steps, -1)
        keys = torch.cat([tokens_at(key_cache, block_table[seqs], places), key[seqs]], dim=1)
        values = torch.cat([tokens_at(value_cache, block_table[seqs], places), value[seqs]], dim=1)
        grouped = query[seqs].unflatten(2, (kv_heads, -1))
        scores = torch.einsum("sqhgd,skhd->shgqk", grouped, keys) * sm_scale
        context = (steps < lengths)[:, None].expand(-1, size, -1)
        seen = torch.cat([context, tree_mask[seqs]], dim=-1)
        weights = torch.softmax(scores.masked_fill(~seen[:, None, None], -torch.inf), dim=-1)
        outs.append(torch.einsum("shgqk,skhd->sqhgd", weights, values).flatten(2, 3))
    return torch.cat(outs).flatten(0, 1)
