"""expect: wrong_result. A row is taken to be so many whole blocks of 128: true of all seen cases (cheat 25). With held-out cases."""

# <kernel>


def rms_norm(x, weight, eps, y):
    whole = x.shape[1] // 128 * 128
    if whole:
        honest(x, weight, eps, y)
    y[:, whole:].zero_()
