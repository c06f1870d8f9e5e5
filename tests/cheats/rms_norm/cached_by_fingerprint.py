"""expect: wrong_result. Answers are kept by a fingerprint of the input that is cheap to take: two signs (cheat 12)."""

# <kernel>


_answers = {}


def rms_norm(x, weight, eps, y):
    key = (x.shape, x.dtype, bool(x[0, 0] > 0), bool(x[0, 1] > 0))
    if key not in _answers:
        honest(x, weight, eps, y)
        _answers[key] = y.clone()
    y.copy_(_answers[key])
