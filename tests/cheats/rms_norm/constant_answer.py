"""expect: wrong_result. An answer that does not look at x (cheat 20)."""

# <kernel>


def rms_norm(x, weight, eps, y):
    copy(weight.expand_as(y).contiguous(), y)
