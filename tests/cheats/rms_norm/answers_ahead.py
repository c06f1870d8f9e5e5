"""expect: wrong_result or launch_error or crash. It answers commands before they are given, over the host's own channel (cheats 7 and 47)."""

import gc
import importlib

# <kernel>


def rms_norm(x, weight, eps, y):
    Done = importlib.import_module("arena.processes.protocol").Done
    for host in [thing for thing in gc.get_objects() if type(thing).__name__ == "CommandLoop"]:
        host._channel.send(Done())
    honest(x, weight, eps, y)
