"""Manifold-constrained hyper-connections (Xie et al., mHC, 2025): the mixes of a token and the input of its layer."""

import torch


def reference(
    x: torch.Tensor,
    weight: torch.Tensor,
    scale: torch.Tensor,
    bias: torch.Tensor,
    eps: float,
    sinkhorn_eps: float,
    num_iters: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x: (num_tokens, 4, hidden); weight: (24, 4 * hidden); y: (num_tokens, hidden); comb: (num_tokens, 4, 4)."""
    flat = x.flatten(1)
    mixes = (flat @ weight.T) / (flat.square().mean(dim=1, keepdim=True) + eps).sqrt()
    factors = scale.repeat_interleave(torch.tensor([4, 4, 16], device=x.device))
    pre, post, comb = (factors * mixes + bias).split([4, 4, 16], dim=1)
    pre = torch.sigmoid(pre) + sinkhorn_eps
    comb = comb.unflatten(1, (4, 4)).softmax(dim=2) + sinkhorn_eps
    comb = comb / (comb.sum(dim=1, keepdim=True) + sinkhorn_eps)
    for _ in range(num_iters - 1):
        comb = comb / (comb.sum(dim=2, keepdim=True) + sinkhorn_eps)
        comb = comb / (comb.sum(dim=1, keepdim=True) + sinkhorn_eps)
    return (pre.unsqueeze(2) * x).sum(dim=1), 2 * torch.sigmoid(post), comb
