"""expect: wrong_result. Answers are kept by a fingerprint of the input that is cheap to take: two signs (cheat 12)."""

# <kernel>


_answers = {}


def rms_norm(x, weight, eps, y):
    key = (x.shape, x.dtype, x[0, 0].item() > 0, x[0, 1].item() > 0)
    if key not in _answers:
        honest(x, weight, eps, y)
        _answers[key] = y.clone()
    copy(_answers[key], y)
