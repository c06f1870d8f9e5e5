"""Decays of linear attention, and the chunks of a flat ragged batch that cumulative ones restart at.

A decay by head is a slope s: a step keeps exp(-s) of the state (Lightning Attention 2, Qin et al., 2024). A decay by
channel is a log-decay of its own in every step, summed inside a chunk (gated linear attention, Yang et al., 2023).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

GATE_FLOOR = 60.0
"""No drawn log-decay of a whole chunk is below minus this: exp of any difference inside it is finite in float32."""


def head_slopes(num_heads: int, generator: torch.Generator, count: int) -> torch.Tensor:
    """Slopes of the heads of one layer: (count, num_heads), float32.

    Head h has 2 ** (-8 (h + 1) / num_heads), as in ALiBi (Press et al., 2022), times a layer's factor in [0.5, 1).
    """
    import torch

    heads = torch.arange(1, num_heads + 1, device=generator.device)
    layer = torch.rand(count, 1, generator=generator, device=generator.device) / 2 + 0.5
    return torch.exp2(-8 * heads / num_heads) * layer


def most_chunks(num_tokens: int, num_seqs: int, chunk_size: int) -> int:
    """The most chunks that any cut of `num_tokens` into `num_seqs` sequences can have."""
    return -(-num_tokens // chunk_size) + num_seqs - 1


def draw_chunk_offsets(
    num_tokens: int, num_seqs: int, chunk_size: int, generator: torch.Generator, count: int
) -> torch.Tensor:
    """Where every chunk of a ragged batch begins: (count, most_chunks + 1), int32, the end of the last one included.

    Sequences have random lengths, zero among them. A chunk has `chunk_size` tokens, the last one of a sequence may have
    fewer; offsets past the last chunk are num_tokens, so that what they enclose is empty.
    """
    import torch

    cuts = torch.randint(0, num_tokens + 1, (count, num_seqs - 1), generator=generator, device=generator.device)
    begins = torch.cat([cuts.new_zeros(count, 1), cuts.sort(dim=-1).values], dim=-1)
    ends = torch.cat([begins[:, 1:], cuts.new_full((count, 1), num_tokens)], dim=-1)
    chunks = (ends - begins + chunk_size - 1) // chunk_size
    last = chunks.cumsum(-1)
    index = torch.arange(most_chunks(num_tokens, num_seqs, chunk_size) + 1, device=generator.device)
    owner = torch.searchsorted(last, index.repeat(count, 1), right=True)
    inside = owner.clamp(max=num_seqs - 1)
    offsets = begins.gather(1, inside) + (index - (last - chunks).gather(1, inside)) * chunk_size
    return torch.where(owner < num_seqs, offsets, num_tokens).int()


def draw_log_decays(
    chunk_offsets: torch.Tensor, chunk_size: int, row: tuple[int, ...], generator: torch.Generator
) -> torch.Tensor:
    """Log-decays summed from the first token of each chunk on: (count, num_tokens, *row), float32.

    chunk_offsets: (count, n), as `draw_chunk_offsets` gives them. The sums fall from token to token, in a full chunk by
    about 0.5 to 5 in all, each channel at its own pace, and stay above -GATE_FLOOR.
    """
    import torch

    count, num_tokens = chunk_offsets.shape[0], int(chunk_offsets[0, -1])
    device = generator.device
    pace = torch.rand((count, 1, *row), generator=generator, device=device) * 4.5 + 0.5
    steps = torch.randn((count, num_tokens, *row), generator=generator, device=device)
    mean_of_softplus = 0.806
    decays = torch.nn.functional.softplus(steps) * pace / (-mean_of_softplus * chunk_size)
    flat = decays.clamp_(min=-GATE_FLOOR / chunk_size).flatten(0, 1)
    first = chunk_offsets[:, :-1] + num_tokens * torch.arange(count, device=device)[:, None]
    lengths = chunk_offsets.diff().flatten()
    for step in range(1, chunk_size):
        tokens = (first.flatten() + step)[lengths > step]
        flat[tokens] += flat[tokens - 1]
    return decays


def chunk_of_token(chunk_offsets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of every token, its chunk and where that begins: two times (num_tokens,), int64. chunk_offsets: (n,)."""
    import torch

    lengths = chunk_offsets.diff().long()
    chunk = torch.repeat_interleave(torch.arange(lengths.numel(), device=lengths.device), lengths)
    return chunk, chunk_offsets.long()[chunk]


def decayed_products(
    rows: torch.Tensor, columns: torch.Tensor, gates: torch.Tensor, first: torch.Tensor, chunk_size: int
) -> torch.Tensor:
    """Inner products with the earlier tokens of the same chunk: (num_tokens, heads, chunk_size).

    Element [t, h, c] is the sum over d of rows[t, h, d] * columns[u, h, d] * exp(gates[t, h, d] - gates[u, h, d]) for
    the token u = first[t] + c, and 0 where u > t. rows, columns, gates: (num_tokens, heads, head_dim).
    """
    import torch

    tokens = torch.arange(rows.shape[0], device=rows.device)
    products = []
    for column in range(chunk_size):
        other = (first + column).minimum(tokens)
        decay = torch.exp(gates - gates[other])
        product = (rows * columns[other] * decay).sum(dim=-1)
        products.append(torch.where((first + column <= tokens)[:, None], product, 0.0))
    return torch.stack(products, dim=-1)
