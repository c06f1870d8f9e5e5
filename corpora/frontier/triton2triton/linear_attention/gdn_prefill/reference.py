"""The gated delta rule (Yang et al., Gated Delta Networks, 2024) in chunks of 64 tokens, gates included.

Inside a chunk, the deltas of all tokens solve a triangular system (Yang et al., DeltaNet, 2024).
"""

import torch
from torch.nn.functional import softplus

from arena.semantics.ragged import spans

_CHUNK = 64


def reference(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    A_log: torch.Tensor,
    dt_bias: torch.Tensor,
    cu_seqlens: torch.Tensor,
    initial_state: torch.Tensor | None,
    sm_scale: float,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """query, key: (num_tokens, num_key_heads, head_dim); states: (num_seqs, num_value_heads, value_dim, head_dim)."""
    group = value.shape[1] // key.shape[1]
    query, key = (x / (x.square().sum(dim=-1, keepdim=True) + eps).sqrt() for x in (query, key))
    query, key = (x.repeat_interleave(group, dim=1).transpose(0, 1) for x in (query, key))
    values = value.transpose(0, 1)
    decays = (-A_log.exp() * softplus(a + dt_bias)).T
    betas = torch.sigmoid(b).T.unsqueeze(2)
    outs, finals = [], []
    for number, (begin, end) in enumerate(spans(cu_seqlens)):
        shape = (value.shape[1], value.shape[2], key.shape[2])
        state = value.new_zeros(shape) if initial_state is None else initial_state[number]
        for start in range(begin, end, _CHUNK):
            part = slice(start, min(start + _CHUNK, end))
            q, k, v, beta = query[:, part], key[:, part], values[:, part], betas[:, part]
            sums = decays[:, part].cumsum(dim=1)
            between = (sums.unsqueeze(2) - sums.unsqueeze(1)).tril().exp().tril()
            since = sums.exp().unsqueeze(2)
            system = (beta * (k @ k.mT) * between).tril(-1)
            identity = torch.eye(system.shape[1], dtype=system.dtype, device=system.device)
            inverse = torch.linalg.solve_triangular(
                identity + system, identity.expand_as(system), upper=False, unitriangular=True
            )
            delta = inverse @ (beta * (v - since * (k @ state.mT)))
            outs.append(sm_scale * (since * (q @ state.mT) + ((q @ k.mT) * between) @ delta))
            left = (sums[:, -1:] - sums).exp().unsqueeze(2)
            state = since[:, -1:] * state + (left * delta).mT @ k
        finals.append(state)
    return torch.cat(outs, dim=1).transpose(0, 1), torch.stack(finals)
