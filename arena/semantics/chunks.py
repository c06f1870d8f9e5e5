"""Chunks of ragged batches: every sequence is cut from its own start, the last chunk of each may be shorter.

Chunks are numbered over all sequences in order; none crosses from one sequence into the next, and an empty sequence has
none. What takes `cu_seqlens` of shape (…, num_seqs + 1) works on one batch or on many draws of one at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from arena.semantics.ragged import draw_offsets

if TYPE_CHECKING:
    import torch

_MEAN_SOFTPLUS = 0.806
"""Of a standard normal number."""


def chunk_counts(cu_seqlens: torch.Tensor, chunk_size: int) -> torch.Tensor:
    """Chunks of every sequence: (…, num_seqs), int64."""
    return (cu_seqlens.diff().long() + chunk_size - 1) // chunk_size


def chunk_indices(cu_seqlens: torch.Tensor, chunk_size: int, most: int) -> torch.Tensor:
    """(…, most, 2), int32: sequence of each chunk and its number in that sequence; -1, -1 past the last chunk.

    num_tokens // chunk_size + num_seqs is enough for `most`, whatever the lengths are.
    """
    import torch

    counts = chunk_counts(cu_seqlens, chunk_size)
    ends = counts.cumsum(dim=-1)
    numbers = torch.arange(most, device=cu_seqlens.device).expand(*ends.shape[:-1], most).contiguous()
    sequences = torch.searchsorted(ends, numbers, right=True)
    used = sequences < counts.shape[-1]
    first = (ends - counts).gather(-1, sequences.clamp(max=counts.shape[-1] - 1))
    pairs = torch.stack([sequences, numbers - first], dim=-1)
    return pairs.masked_fill(~used[..., None], -1).int()


def chunk_begins(cu_seqlens: torch.Tensor, num_tokens: int, chunk_size: int) -> torch.Tensor:
    """First token of the chunk that every token lies in: (…, num_tokens), int64."""
    import torch

    starts = cu_seqlens.long().contiguous()
    tokens = torch.arange(num_tokens, device=starts.device).expand(*starts.shape[:-1], num_tokens).contiguous()
    sequences = torch.searchsorted(starts[..., 1:].contiguous(), tokens, right=True)
    positions = tokens - starts.gather(-1, sequences)
    return tokens - positions % chunk_size


def chunk_rows(cu_seqlens: torch.Tensor, chunk_size: int) -> torch.Tensor:
    """The tokens of every chunk of one batch: (num_chunks, chunk_size), int64, -1 where a chunk is shorter."""
    import torch

    counts = chunk_counts(cu_seqlens, chunk_size)
    sequences = torch.repeat_interleave(torch.arange(counts.numel(), device=counts.device), counts)
    numbers = torch.arange(sequences.numel(), device=counts.device) - (counts.cumsum(0) - counts)[sequences]
    begins = cu_seqlens.long()[sequences] + numbers * chunk_size
    rows = begins[:, None] + torch.arange(chunk_size, device=counts.device)
    return torch.where(rows < cu_seqlens.long()[sequences + 1][:, None], rows, -1)


def gather_chunks(values: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """(num_chunks, chunk_size, …) of values (num_tokens, …), zero where `rows`, of `chunk_rows`, says -1."""
    missing = (rows < 0).view(*rows.shape, *[1] * (values.dim() - 1))
    return values[rows.clamp(min=0)].masked_fill(missing, 0)


def scatter_chunks(chunks: torch.Tensor, rows: torch.Tensor, num_tokens: int) -> torch.Tensor:
    """(num_tokens, …): every token's row of chunks (num_chunks, chunk_size, …), the reverse of `gather_chunks`."""
    out = chunks.new_zeros(num_tokens, *chunks.shape[2:])
    present = rows >= 0
    out[rows[present]] = chunks[present]
    return out


def sums_within_chunks(values: torch.Tensor, begins: torch.Tensor) -> torch.Tensor:
    """Sum over the tokens of its chunk up to every token, itself included, in float64.

    values: (count, num_tokens, …); begins: (count, num_tokens), of `chunk_begins`.
    """
    import torch

    totals = values.double().cumsum(dim=1)
    before = totals - values.double()
    index = begins.view(*begins.shape, *[1] * (values.dim() - 2)).expand_as(before)
    return totals - torch.gather(before, 1, index)


def draw_chunks(case: Mapping[str, int], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """`cu_seqlens` of sequences of min_len or more, and num_tokens // chunk_size + num_seqs `chunk_indices`."""
    offsets = draw_offsets(case["num_tokens"], case["num_seqs"], case["min_len"], count, generator)
    most = case["num_tokens"] // case["chunk_size"] + case["num_seqs"]
    return {"cu_seqlens": offsets, "chunk_indices": chunk_indices(offsets, case["chunk_size"], most)}


def draw_log_decays(shape: tuple[int, ...], mean: float, generator: torch.Generator) -> torch.Tensor:
    """Gates of single tokens as models have them: -softplus of normal numbers, scaled to a negative `mean`, float32."""
    import torch

    raw = torch.randn(shape, generator=generator, device=generator.device)
    return torch.nn.functional.softplus(raw).mul_(mean / _MEAN_SOFTPLUS)
