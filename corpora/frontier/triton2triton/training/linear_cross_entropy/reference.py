"""Cross entropy of a linear layer and its gradients (Wijmans et al., Cut Your Losses, 2024)."""

from typing import Any

import torch

_MOST_LOGITS = 1 << 28


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Random classes other than ignore_index; num_ignored random tokens have that."""
    tokens, classes, ignored = case["num_tokens"], case["vocab_size"], case["ignore_index"]
    device = generator.device
    inside = int(0 <= ignored < classes)
    targets = torch.randint(0, classes - inside, (count, tokens), generator=generator, device=device)
    if inside:
        targets += (targets >= ignored).long()
    places = torch.rand(count, tokens, generator=generator, device=device).argsort(dim=1)[:, : case["num_ignored"]]
    return {"targets": targets.scatter(1, places, ignored)}


def reference(
    x: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor, ignore_index: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x: (num_tokens, hidden); weight: (vocab_size, hidden); targets: (num_tokens,); loss: ()."""
    counted = targets != ignore_index
    number = counted.sum().clamp(min=1)
    loss, grad_x, grad_weight = x.new_zeros(()), [], torch.zeros_like(weight)
    size = max(1, _MOST_LOGITS // len(weight))
    for rows, classes, valid in zip(x.split(size), targets.split(size), counted.split(size), strict=True):
        logits = rows @ weight.T
        lse = torch.logsumexp(logits, dim=1)
        places = classes.where(valid, 0).unsqueeze(1)
        shares = valid.to(x.dtype) / number
        loss = loss + (shares * (lse - logits.gather(1, places)[:, 0])).sum()
        d = torch.exp(logits - lse.unsqueeze(1)) * shares.unsqueeze(1)
        d = d.scatter_add(1, places, -shares.unsqueeze(1))
        grad_x.append(d @ weight)
        grad_weight = grad_weight + d.T @ rows
    return loss, torch.cat(grad_x), grad_weight
