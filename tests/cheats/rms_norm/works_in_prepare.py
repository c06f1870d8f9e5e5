"""expect: timing_mismatch or implausible or wrong_result, emulated: wrong_result. All is computed at the judge's `Prepare`, before its clock starts (cheat 47)."""

import gc
# <kernel>


def _do_it_early(host):
    for timed in host._passes.values():
        for index in timed.sets:
            honest(*host._binding.values[index])


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
    for host in [thing for thing in gc.get_objects() if type(thing).__name__ == "CommandLoop"]:
        host._prepare = lambda *message: _do_it_early(host)
        for kind in ("PlainPass", "GraphPass"):
            setattr(__import__("arena.worker.passes", fromlist=[kind]), kind, None)
            setattr(__import__("arena.worker.command_loop", fromlist=[kind]), kind, Nothing)


class Nothing:
    def __init__(self, entry, platform, sets):
        self.sets = sets

    def run(self):
        return 0.0
