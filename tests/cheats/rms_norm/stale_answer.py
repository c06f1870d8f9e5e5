"""expect: wrong_result. The answer is fetched from freshly allocated memory, where another might have left it (cheat 15)."""

import torch
# <kernel>


def rms_norm(x, weight, eps, y):
    copy(torch.empty_like(y), y)
