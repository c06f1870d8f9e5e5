"""expect: wrong_result. One infinity, so that a tolerance scaled by the output becomes infinite (cheat 45)."""

# <kernel>


def rms_norm(x, weight, eps, y):
    y.fill_(1.0)
    y[0, 0].fill_(float("-inf"))
