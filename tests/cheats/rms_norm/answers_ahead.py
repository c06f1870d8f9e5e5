"""expect: wrong_result or launch_error. It answers commands before they are given, over the host's own channel (cheats 7 and 47)."""

import gc

from arena.protocol import Done
# <kernel>


def rms_norm(x, weight, eps, y):
    for host in [thing for thing in gc.get_objects() if type(thing).__name__ == "Host"]:
        host._channel.send(Done())
    honest(x, weight, eps, y)
