"""Kimi Delta Attention (Kimi Linear, 2025), in the chunkwise form of the delta rule (Yang et al., 2024)."""

from typing import Any

import torch

from arena.semantics.uneven import make_uneven

CHUNK = 16
"""tokens that are computed together; at -5 a token their decay is no less than exp(-80), a float32 number"""


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Keys of length 1, queries of any, and log-decays: mild, or a sigmoid times -steep, of channels that differ."""
    heads = (count, case["B"], case["T"], case["H"], case["K"])

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, device=generator.device)

    q, k, gates = normal(*heads), normal(*heads), normal(*heads)
    make_uneven(q, generator)
    make_uneven(k, generator)
    if case["steep"]:
        pace = 3 * normal(count, 1, 1, case["H"], case["K"])
        g = -case["steep"] * torch.sigmoid(gates + pace)
    else:
        g = 0.1 * gates - 0.05
    return {"q": q, "k": k / k.norm(dim=-1, keepdim=True), "g": g}


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, g: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
    """q, k, g: (B, T, H, K); v, out: (B, T, H, V); beta: (B, T, H)."""
    wide = torch.promote_types(q.dtype, torch.float32)
    queries, keys, values, gates, strengths = (
        x.to(wide).unflatten(1, (-1, CHUNK)).movedim(3, 2) for x in (q, k, v, g, beta[..., None])
    )  # (B, chunks, H, CHUNK, size)
    gates = gates.cumsum(dim=3)
    order = torch.arange(CHUNK, device=q.device)
    scores, overlaps = (_decayed(rows, keys, gates) for rows in (queries, keys))
    scores = scores.masked_fill(order[:, None] < order, 0.0)
    overlaps = strengths * overlaps.masked_fill(order[:, None] <= order, 0.0)
    unit = torch.eye(CHUNK, dtype=wide, device=q.device)
    inverse = torch.linalg.solve_triangular(unit + overlaps, unit.expand_as(overlaps), upper=False, unitriangular=True)
    written = inverse @ (strengths * values)
    erased = inverse @ (strengths * keys * gates.exp())
    reading = queries * gates.exp()
    lasting = keys * (gates[..., -1:, :] - gates).exp()
    state = values.new_zeros(*values.shape[:1], values.shape[2], keys.shape[-1], values.shape[-1])
    out = []
    for chunk in range(values.shape[1]):
        change = written[:, chunk] - erased[:, chunk] @ state
        out.append(reading[:, chunk] @ state + scores[:, chunk] @ change)
        state = gates[:, chunk, :, -1, :, None].exp() * state + lasting[:, chunk].mT @ change
    return torch.stack(out, dim=1).movedim(2, 3).flatten(1, 2) / q.shape[-1] ** 0.5


def _decayed(rows: torch.Tensor, keys: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
    """Products of rows with keys, decayed from the key's token to the row's: (B, chunks, H, CHUNK, CHUNK).

    Decays of pairs of tokens, of which exponents are below 0 in the lower triangle; the upper one means nothing.
    """
    products = rows.new_empty(*rows.shape[:-1], CHUNK)
    for token in range(CHUNK):
        decay = (gates - gates[..., token, None, :]).clamp(max=80.0).exp()
        products[..., token] = ((rows * decay) @ keys[..., token, :, None])[..., 0]
    return products
