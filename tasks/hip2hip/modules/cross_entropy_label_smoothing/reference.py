"""Cross-entropy with label smoothing (Szegedy et al., 2016), averaged over the batch."""

from typing import Any

import torch

from arena.semantics.uneven import make_uneven

RIVALS = 12


def reference(logits: torch.Tensor, target: torch.Tensor, smoothing: float) -> torch.Tensor:
    """logits: (M, C); target: (M,) int64; loss: a scalar.

    Classes are averaged, not summed: a float16 sum over 256000 of them overflows.
    """
    log_probabilities = torch.log_softmax(logits, dim=-1)
    hard = -log_probabilities.gather(1, target.unsqueeze(1)).squeeze(1)
    uniform = -log_probabilities.mean(dim=-1)
    return ((1.0 - smoothing) * hard + smoothing * uniform).mean()


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Logits of a classifier that has learned something: the target's is higher, and rows are shifted.

    With logits that know nothing of the target, the smoothed and the plain loss have the same mean, and a
    kernel could ignore either term; a shift makes the mean of the logits matter, and exp() without the
    maximum overflow in one row and vanish in the next. In half of the sets the targets have a probability of 0.4 to
    0.99, and a few rivals share most of the rest: the loss is small, and who leaves out an eighth of the row is seen.
    """
    rows, classes, dtype = (count, case["M"], 1), case["C"], case["dtype"]
    chance = {"generator": generator, "device": generator.device}
    logits = torch.randn(count, case["M"], classes, dtype=dtype, **chance)
    make_uneven(logits, generator)
    target = torch.randint(0, classes, rows, **chance)
    logits.scatter_add_(2, target, 6.0 * torch.rand(rows, dtype=dtype, **chance))
    signs = 2.0 * (torch.arange(case["M"], device=generator.device)[:, None] % 2) - 1.0
    logits += (signs * (115.0 + 10.0 * torch.rand(rows, **chance))).to(dtype)
    known = torch.rand((count, 1, 1), **chance) < 0.5
    rivals = torch.randint(0, classes, (count, case["M"], min(RIVALS, classes)), **chance)
    level = logits.float().logsumexp(dim=2, keepdim=True).to(dtype).expand(rivals.shape)
    logits.scatter_(2, rivals, torch.where(known, level, logits.gather(2, rivals)))
    probability = 0.4 + 0.59 * torch.rand(rows, **chance)
    others = logits.scatter(2, target, -torch.inf).float().logsumexp(dim=2, keepdim=True)
    confident = (others + torch.logit(probability)).to(dtype)
    logits.scatter_(2, target, torch.where(known, confident, logits.gather(2, target)))
    return {"logits": logits, "target": target.squeeze(2)}
