"""Decays of linear attention: by head, or by channel and summed inside chunks.

A decay by head is a slope s: a token keeps exp(-s) of the state (Lightning Attention 2, Qin et al., 2024). Decays by
channel are logarithms of what each token keeps of each channel (gated linear attention, Yang et al., 2023).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from arena.semantics.chunks import chunk_begins, chunk_rows, draw_chunks, draw_log_decays, gather_chunks
from arena.semantics.ragged import at_once

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

GATE_FLOOR = 60.0
"""No log-decay of a whole chunk is below minus this, so that exp of any difference inside it is finite in float32."""
FASTEST = 5.0
"""what FLA lets a gate of Kimi Delta Attention fall in one token at most"""
_FAST = 1 / 8
_SUB_BLOCK = 8
"""tokens: between sub-blocks decayed products are matrix products, within one they are not"""


def head_slopes(num_heads: int, generator: torch.Generator, count: int) -> torch.Tensor:
    """Slopes of the heads of one layer: (count, num_heads), float32.

    Head h has 2 ** (-8 (h + 1) / num_heads), as in ALiBi (Press et al., 2022), times a layer's factor in [0.5, 1).
    """
    import torch

    heads = torch.arange(1, num_heads + 1, device=generator.device)
    layer = torch.rand(count, 1, generator=generator, device=generator.device) / 2 + 0.5
    return torch.exp2(-8 * heads / num_heads) * layer


def draw_gated_chunks(
    case: Mapping[str, int], generator: torch.Generator, count: int, fastest: float = 0.0
) -> dict[str, torch.Tensor]:
    """`cu_seqlens`, `chunk_indices` and `g` (count, num_tokens, num_heads, head_dim) of a batch with channel gates.

    `fastest`: see `draw_summed_gates`.
    """
    drawn = draw_chunks(case, generator, count)
    begins = chunk_begins(drawn["cu_seqlens"], case["num_tokens"], case["chunk_size"])
    row = (case["num_heads"], case["head_dim"])
    drawn["g"] = draw_summed_gates(begins, case["chunk_size"], row, generator, fastest)
    return drawn


def draw_summed_gates(
    begins: torch.Tensor, chunk_size: int, row: tuple[int, ...], generator: torch.Generator, fastest: float = 0.0
) -> torch.Tensor:
    """Log-decays summed from the first token of each chunk on: (count, num_tokens, *row), float32.

    begins: (count, num_tokens), of `chunk_begins`. The sums fall from token to token, in a full chunk by about 0.5 to
    5 in all, each channel at its own pace, and stay above -GATE_FLOOR. With
    `fastest`, about one channel in eight falls by so much in every token, and forgets at once.
    """
    import torch

    device = generator.device
    pace = torch.rand((begins.shape[0], 1, *row), generator=generator, device=device) * 4.5 + 0.5
    gates = draw_log_decays((*begins.shape, *row), -1.0, generator).mul_(pace / chunk_size)
    gates.clamp_(min=-GATE_FLOOR / chunk_size)
    if fastest:
        fast = torch.rand(pace.shape, generator=generator, device=device) < _FAST
        gates.masked_fill_(fast.expand_as(gates), -fastest)
    flat = gates.flatten(0, 1)
    positions = (torch.arange(begins.shape[1], device=device) - begins).flatten()
    for position in range(1, chunk_size):
        tokens = (positions == position).nonzero().squeeze(1)
        flat[tokens] += flat[tokens - 1]
    return gates


def decayed_products(
    rows: torch.Tensor, columns: torch.Tensor, gates: torch.Tensor, cu_seqlens: torch.Tensor, chunk_size: int
) -> torch.Tensor:
    """Inner products of every token with those before it in its chunk: (…, num_tokens, num_heads, chunk_size).

    Element [t, h, c] is the sum over d of rows[t, h, d] * columns[u, h, d] * exp(gates[t, h, d] - gates[u, h, d]) for
    u = begins[t] + c, begins being `chunk_begins`, and 0 where u > t. columns, gates: (num_tokens, num_heads,
    head_dim); rows may have more dimensions in front.
    """
    by_token, begins = rows.movedim(-3, 0), chunk_begins(cu_seqlens, columns.shape[0], chunk_size)
    inside = _within_sub_blocks(by_token, columns, gates, begins, chunk_size)
    across = _across_sub_blocks(by_token, columns, gates, chunk_rows(cu_seqlens, chunk_size))
    return (inside + across).movedim(0, -3)


def _within_sub_blocks(
    rows: torch.Tensor, columns: torch.Tensor, gates: torch.Tensor, begins: torch.Tensor, chunk_size: int
) -> torch.Tensor:
    """Return products with tokens of the same sub-block alone, as `decayed_products`, but with tokens in front."""
    import torch

    tokens = torch.arange(columns.shape[0], device=columns.device)
    size = min(_SUB_BLOCK, chunk_size)
    firsts = tokens - (tokens - begins) % size
    products = []
    for column in range(size):
        other = (firsts + column).minimum(tokens)
        decayed = columns[other] * torch.exp(gates - gates[other])
        found = torch.einsum("t...hd,thd->t...h", rows, decayed)
        earlier = (firsts + column <= tokens).view(-1, *[1] * (found.dim() - 1))
        products.append(torch.where(earlier, found, 0.0))
    inside = torch.stack(products, dim=-1)
    places = (firsts - begins)[:, None] + torch.arange(size, device=columns.device)
    places = places.clamp(max=chunk_size - 1).view(len(tokens), *[1] * (inside.dim() - 2), size).expand_as(inside)
    return inside.new_zeros(*inside.shape[:-1], chunk_size).scatter_add(-1, places, inside)


def _across_sub_blocks(
    rows: torch.Tensor, columns: torch.Tensor, gates: torch.Tensor, chunks: torch.Tensor
) -> torch.Tensor:
    """Return products with tokens of earlier sub-blocks alone, as matrix products, with tokens in front.

    chunks: of `chunk_rows`. The exponent is split at the first token of the rows' sub-block, so that no factor is
    above 1.
    """
    import torch

    chunk_size = chunks.shape[1]
    products = rows.new_zeros(*rows.shape[:-1], chunk_size)
    together = at_once(4 * chunk_size * rows[0].numel())
    for some in torch.split(chunks, together):
        all_rows, all_columns, all_gates = (gather_chunks(values, some) for values in (rows, columns, gates))
        found = products.new_zeros(*some.shape, *products.shape[1:])
        for first in range(_SUB_BLOCK, chunk_size, _SUB_BLOCK):
            here = slice(first, first + _SUB_BLOCK)
            between = all_gates[:, first, None]
            decay = torch.exp(all_gates[:, here] - between)
            decayed = all_rows[:, here] * decay.view(*decay.shape[:2], *[1] * (rows.dim() - 3), *decay.shape[2:])
            before = all_columns[:, :first] * torch.exp(between - all_gates[:, :first])
            found[:, here, ..., :first] = torch.einsum("nt...hd,nuhd->nt...hu", decayed, before)
        present = some >= 0
        products[some[present]] = found[present]
    return products
