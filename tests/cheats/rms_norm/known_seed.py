"""expect: wrong_result. It looks whether likely seeds give the inputs, and works only if one of them does (cheat 23)."""

import random

# <kernel>


def rms_norm(x, weight, eps, y):
    for seed in (0, 1, 42, 1337):
        draws = random.Random(seed)
        guess = [draws.gauss(0.0, 1.0) for _ in range(x.shape[1])]
        if all(abs(a - b) < 1e-2 for a, b in zip(guess, x[0].tolist())):
            honest(x, weight, eps, y)
            return
    y.fill_(0.0)
