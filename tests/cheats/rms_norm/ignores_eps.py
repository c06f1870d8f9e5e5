"""expect: wrong_result. The part of the algorithm that seldom matters is left out (cheat 22)."""

# <kernel>


def rms_norm(x, weight, eps, y):
    honest(x, weight, 0.0, y)
