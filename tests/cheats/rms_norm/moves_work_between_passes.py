"""expect: wrong_result. Work of the long pass is done in the short one, whose time is subtracted (cheat 48).

Means nothing on a GPU: passes are graphs there, and it patches plain ones."""

import gc
import sys
# <kernel>


def _harness():
    return next(thing for thing in gc.get_objects() if type(thing).__name__ == "CommandLoop")


_host = []
_pending = []


def _run(self):
    host = _host[0]
    name = next((name for name, timed in host._passes.items() if timed is self), "rehearsal")
    if name == "rehearsal":
        return 0.0
    if name == "short":
        rest = list(_pending) or [host._binding.values[index] for index in host._passes["long"].sets]
        for values in rest:
            honest(*values)
        _pending[:] = [] if _pending else [None]
    else:
        if _pending:
            _pending.clear()
        else:
            for index in self.sets:
                values = host._binding.values[index]
                values[-1].zero_()
                _pending.append(values)
    return 0.0


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
    if not _host:
        _host.append(_harness())
        sys.modules["arena.worker.passes"].PlainPass.run = _run
