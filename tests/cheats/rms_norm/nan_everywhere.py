"""expect: wrong_result. NaN as a wildcard (cheat 17)."""

# <kernel>


def rms_norm(x, weight, eps, y):
    y.fill_(float("nan"))
