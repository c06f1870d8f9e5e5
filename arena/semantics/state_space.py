"""Chunked scans of state-space models (Dao and Gu, Mamba-2, 2024): tokens by chunk, and steps and decays as they occur.

A row of tokens is cut into chunks of `chunk_size`; the last one may be short. Step sizes and their running decays lie
as (batch, num_heads, num_chunks, chunk_size), and past the end of a row the step is 0, so that the decay stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch


class Steps(NamedTuple):
    """Step sizes dt, and the sums of dt * A from the beginning of each chunk up to and with every token.

    Both float32: (*outer, num_heads, num_chunks, chunk_size).
    """

    dt: torch.Tensor
    dA_cumsum: torch.Tensor


def chunked(values: torch.Tensor, chunk_size: int) -> torch.Tensor:
    """(batch, seq_len, *row) to (batch, num_chunks, chunk_size, *row), with zeros past the end."""
    batch, seq_len, *row = values.shape
    num_chunks = -(-seq_len // chunk_size)
    padded = values.new_zeros(batch, num_chunks * chunk_size, *row)
    padded[:, :seq_len] = values
    return padded.view(batch, num_chunks, chunk_size, *row)


def draw_steps(
    outer: tuple[int, ...], num_heads: int, seq_len: int, chunk_size: int, generator: torch.Generator
) -> Steps:
    """Steps between 0.2 and 1.8; over a whole chunk, heads forget between 40 % and 95 % of what they hold."""
    import torch

    device = generator.device
    num_chunks = -(-seq_len // chunk_size)
    shape = (*outer, num_heads, num_chunks, chunk_size)
    dt = torch.rand(shape, generator=generator, device=device) * 1.6 + 0.2
    dt.flatten(-2)[..., seq_len:] = 0
    rate = torch.rand(*outer, num_heads, 1, 1, generator=generator, device=device) * 2.5 + 0.5
    return Steps(dt, (dt * (-rate / chunk_size)).cumsum(-1))


def draw_seq_idx(outer: tuple[int, ...], seq_len: int, num_seqs: int, generator: torch.Generator) -> torch.Tensor:
    """Ids of the sequences packed into each row, int32, ascending from 0 to num_seqs - 1: (*outer, seq_len).

    Boundaries lie anywhere; no sequence is empty, so that num_seqs is at most seq_len.
    """
    import torch

    keys = torch.rand(*outer, seq_len, generator=generator, device=generator.device, dtype=torch.float64)
    keys[..., 0] = 2
    begins = torch.zeros_like(keys, dtype=torch.int32)
    begins.scatter_(-1, keys.topk(num_seqs - 1, largest=False).indices, 1)
    return begins.cumsum(-1).int()
