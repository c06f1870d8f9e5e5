"""expect: launch_error. It raises with a text of 6 MiB, of which the judge keeps the end (cheat 73)."""

# <kernel>


def rms_norm(x, weight, eps, y):
    raise ValueError("no verdict " * (6 << 16))
