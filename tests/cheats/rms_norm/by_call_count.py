"""expect: wrong_result. After so many calls it takes itself for tested and copies an old answer (cheat 13)."""

# <kernel>


_calls, _old = [], {}


def rms_norm(x, weight, eps, y):
    _calls.append(1)
    if len(_calls) > 11 and y.shape in _old:
        copy(_old[y.shape], y)
        return
    honest(x, weight, eps, y)
    _old[y.shape] = y.clone()
