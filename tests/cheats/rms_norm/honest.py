"""expect: passed. A plain right kernel: what all the others are measured against."""

# <kernel>


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
