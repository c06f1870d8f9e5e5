"""expect: wrong_result. Answers are kept by the address of the input and copied back (cheat 11)."""

# <kernel>


_answers = {}


def rms_norm(x, weight, eps, y):
    key = (x.data_ptr(), tuple(x.shape))
    if key in _answers:
        copy(_answers[key], y)
        return
    honest(x, weight, eps, y)
    _answers[key] = y.clone()
