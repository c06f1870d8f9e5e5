"""expect: nondeterministic. Right at first, wrong when the same inputs come again."""

# <kernel>


_last = []


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
    if _last and _last[-1] == x.flatten()[:8].tolist():
        copy(y, y, 1.5)
    _last.append(x.flatten()[:8].tolist())
