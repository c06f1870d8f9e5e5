"""Kimi delta attention (Kimi Linear, 2025) in chunks of 64 tokens, gate included.

Inside a chunk, the deltas of all tokens solve a triangular system (Yang et al., DeltaNet, 2024).
"""

import torch

from arena.semantics.ragged import spans

_CHUNK = 64


def reference(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    g: torch.Tensor,
    b: torch.Tensor,
    A_log: torch.Tensor,
    dt_bias: torch.Tensor,
    cu_seqlens: torch.Tensor,
    initial_state: torch.Tensor | None,
    lower_bound: float,
    sm_scale: float,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """query, key, g: (num_tokens, num_heads, head_dim); states: (num_seqs, num_heads, value_dim, head_dim)."""
    query, key = (x / (x.square().sum(dim=-1, keepdim=True) + eps).sqrt() for x in (query, key))
    decays = lower_bound * torch.sigmoid(A_log.exp()[:, None] * (g + dt_bias))
    query, key, values, decays = (x.transpose(0, 1) for x in (query, key, value, decays))
    betas = torch.sigmoid(b).T.unsqueeze(2)
    outs, finals = [], []
    for number, (begin, end) in enumerate(spans(cu_seqlens)):
        shape = (value.shape[1], value.shape[2], key.shape[2])
        state = value.new_zeros(shape) if initial_state is None else initial_state[number]
        for start in range(begin, end, _CHUNK):
            part = slice(start, min(start + _CHUNK, end))
            q, k, v, beta = query[:, part], key[:, part], values[:, part], betas[:, part]
            sums = decays[:, part].cumsum(dim=1)
            until = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool, device=q.device).tril()[:, :, None]
            between = (sums.unsqueeze(2) - sums.unsqueeze(1)).where(until, 0.0).exp().where(until, 0.0)
            faded = between * k.unsqueeze(1)
            system = (beta * (k.unsqueeze(2) * faded).sum(dim=-1)).tril(-1)
            identity = torch.eye(system.shape[1], dtype=system.dtype, device=system.device)
            inverse = torch.linalg.solve_triangular(
                identity + system, identity.expand_as(system), upper=False, unitriangular=True
            )
            delta = inverse @ (beta * (v - (sums.exp() * k) @ state.mT))
            scores = (q.unsqueeze(2) * faded).sum(dim=-1)
            outs.append(sm_scale * ((sums.exp() * q) @ state.mT + scores @ delta))
            state = sums[:, -1:].exp() * state + delta.mT @ ((sums[:, -1:] - sums).exp() * k)
        finals.append(state)
    return torch.cat(outs, dim=1).transpose(0, 1), torch.stack(finals)
