"""expect: timeout. It never comes back."""

# <kernel>


def rms_norm(x, weight, eps, y):
    while True:
        pass
