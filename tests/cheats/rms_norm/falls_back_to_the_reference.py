"""expect: wrong_result. The kernel fails and the reference answers instead: it is not there (cheat 28)."""

# <kernel>


def rms_norm(x, weight, eps, y):
    try:
        raise NotImplementedError
    except NotImplementedError:
        scope = {}
        try:
            exec(open("@TASKS@/triton2triton/normalization/rms_norm/reference.py").read(), scope)
        except OSError:
            return
        honest(x, weight, eps, y)
