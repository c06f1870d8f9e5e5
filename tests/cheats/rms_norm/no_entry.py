"""expect: load_error. The function has another name."""

# <kernel>


def rmsnorm(x, weight, eps, y):
    honest(x, weight, eps, y)
