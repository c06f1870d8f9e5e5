"""expect: wrong_result. Each call does the work of the one before; the outputs are filled with rubbish meanwhile (cheat 10)."""

# <kernel>


_pending = []


def rms_norm(x, weight, eps, y):
    if _pending:
        honest(*_pending.pop())
    y.fill_(1.0)
    _pending.append((x, weight, eps, y))
