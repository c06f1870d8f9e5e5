"""Backward pass of attention from the log-sum-exp (FlashAttention, Dao et al., 2022), causal and ragged."""

import torch

from arena.semantics.ragged import at_once, spans


def reference(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    dout: torch.Tensor,
    cu_seqlens: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """query, out, dout, dq: (num_tokens, num_heads, head_dim); key, value, dk, dv: (num_tokens, num_kv_heads, …)."""
    kv_heads = key.shape[1]
    query, out, dout = (x.unflatten(1, (kv_heads, -1)).permute(1, 2, 0, 3) for x in (query, out, dout))
    lse = lse.unflatten(1, (kv_heads, -1)).permute(1, 2, 0)
    key, value = (x.transpose(0, 1).unsqueeze(1) for x in (key, value))
    own = (out * dout).sum(dim=-1)
    dq, dk, dv = [], [], []
    for begin, end in spans(cu_seqlens):
        k, v = key[:, :, begin:end], value[:, :, begin:end]
        k_grad, v_grad = torch.zeros_like(k[:, 0]), torch.zeros_like(v[:, 0])
        rows = at_once(6 * query.shape[0] * query.shape[1] * (end - begin))
        for start in range(begin, end, rows):
            part = slice(start, min(start + rows, end))
            q, do = query[:, :, part], dout[:, :, part]
            i = torch.arange(part.start - begin, part.stop - begin, device=q.device)
            seen = torch.arange(end - begin, device=q.device) <= i[:, None]
            exponents = sm_scale * (q @ k.mT) - lse[:, :, part, None]
            p = exponents.masked_fill(~seen, -torch.inf).exp()
            e = p * (do @ v.mT - own[:, :, part, None])
            dq.append((sm_scale * (e @ k)).permute(2, 0, 1, 3).flatten(1, 2))
            # Heads of a group are summed as one long product.
            flat = [x.flatten(1, 2) for x in (e, p, q, do)]
            k_grad = k_grad + sm_scale * (flat[0].mT @ flat[2])
            v_grad = v_grad + flat[1].mT @ flat[3]
        dk.append(k_grad.transpose(0, 1))
        dv.append(v_grad.transpose(0, 1))
    return torch.cat(dq), torch.cat(dk), torch.cat(dv)
