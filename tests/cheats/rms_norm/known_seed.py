"""expect: wrong_result. The inputs are drawn again from likely seeds, and their answers kept (cheat 23)."""

import torch
# <kernel>


_guesses = {}


def rms_norm(x, weight, eps, y):
    for seed in (0, 1, 42, 1337):
        guess = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed)).to(x)
        _guesses.setdefault((x.shape, seed), guess)
        if torch.equal(guess, x):
            honest(x, weight, eps, y)
            return
    y.copy_(_guesses[x.shape, 0])
