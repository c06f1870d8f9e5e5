"""expect: input_mutated. The input is scaled in place, so that a reference run on it would agree (cheat 18)."""

# <kernel>


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
    copy(weight, weight, 2.0)
