"""expect: wrong_result. A process that left the session is not stopped with its host, and works on while the clock stands (cheat 49)."""

import gc
import os
import time
# <kernel>


def _compute_for_ever(calls):
    end = time.monotonic() + 3
    while time.monotonic() < end:
        for values in calls:
            if values[-1].isnan().any() or (values[-1] == 1).all():
                honest(*values)


def _forked():
    try:
        return os.fork() == 0
    except OSError:
        return False


def _arrange(host, message):
    if message.name == "long" and _forked():
        try:
            os.setsid()
            _compute_for_ever([host._binding.values[index] for index in message.sets])
        finally:
            os._exit(0)
    return Nothing(message.sets)


class Nothing:
    def __init__(self, sets):
        self.sets = sets

    def run(self):
        return 0.0


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
    for host in [thing for thing in gc.get_objects() if type(thing).__name__ == "CommandLoop"]:
        host._arrange = lambda message: _arrange(host, message)
