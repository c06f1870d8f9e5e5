"""expect: wrong_result. It looks whether passes have been arranged, and does half the work in these (cheat 30)."""

import gc
# <kernel>

_hosts = []


def rms_norm(x, weight, eps, y):
    if not _hosts:
        _hosts.extend(thing for thing in gc.get_objects() if type(thing).__name__ == "CommandLoop")
    honest(x, weight, eps, y)
    if any(host._passes for host in _hosts):
        y[y.shape[0] // 2 :].fill_(1.0)
