"""Products inside sub-blocks of a chunk (Yang et al., gated linear attention, 2023), with the gates of Kimi Linear."""

from typing import Any

import torch

from arena.semantics.chunks import chunk_begins
from arena.semantics.decay import GATE_FLOOR, decayed_products, draw_gated_chunks


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Random lengths, their chunks, and log-decays by channel, summed within chunks."""
    return draw_gated_chunks(case, generator, count, GATE_FLOOR / case["chunk_size"])


def reference(
    query: torch.Tensor,
    key: torch.Tensor,
    beta: torch.Tensor,
    g: torch.Tensor,
    cu_seqlens: torch.Tensor,
    kk: torch.Tensor,
    qk: torch.Tensor,
    sub_block: int,
    sm_scale: float,
    chunk_size: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """query, key, g: (num_tokens, num_heads, head_dim); beta: (num_tokens, num_heads); kk, qk: (…, chunk_size)."""
    begins = chunk_begins(cu_seqlens, key.shape[0], chunk_size)
    positions = (torch.arange(key.shape[0], device=key.device) - begins)[:, None, None]
    columns = torch.arange(chunk_size, device=key.device)
    products = decayed_products(torch.stack([key, query]), key, g, cu_seqlens, chunk_size)
    with_keys, with_queries = beta[..., None] * products[0], sm_scale * products[1]
    same = columns // sub_block == positions // sub_block
    with_keys = torch.where(columns < positions, with_keys, 0.0)
    return torch.where(same, with_keys, kk), torch.where(same, with_queries, qk)
