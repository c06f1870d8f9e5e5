"""expect: wrong_result. Zeros, in the hope of a tolerance that is absolute (cheat 19)."""

# <kernel>


def rms_norm(x, weight, eps, y):
    y.zero_()
