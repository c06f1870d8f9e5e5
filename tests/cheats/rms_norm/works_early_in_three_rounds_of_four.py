"""expect: passed or timing_mismatch or implausible, emulated: passed. In one placement of the buffers all of the long pass is computed at the judge's `Prepare` in three rounds of four; a case that is not failed for it is left undecided, without credit (cheat 47)."""

import gc
import sys
# <kernel>


_passes = sys.modules["arena.worker.passes"]
_placements = [0]
_rounds = [0]
_capture = _passes.GraphPass.__init__
_run = _passes.GraphPass.run
_done_early = [False]
_hosts = []


def _captured(self, call, platform, sets):
    _capture(self, call, platform, sets)
    if len(sets) == 1:  # the last of three that are arranged for a placement
        _placements[0] += 1
        _rounds[0] = 0


def _skipped(self):
    if not _hosts or _hosts[0]._passes.get("long") is not self or _placements[0] % 2:
        return _run(self)
    _rounds[0] += 1
    return 0.0 if _rounds[0] % 4 and _done_early[0] else _run(self)


def _early(host, prepare):
    def prepared(*message):
        prepare(*message)
        _done_early[0] = False
        if _placements[0] and not _placements[0] % 2 and (_rounds[0] + 1) % 4 and "long" in host._passes:
            _run(host._passes["long"])
            _done_early[0] = True

    return prepared


_passes.GraphPass.__init__ = _captured
_passes.GraphPass.run = _skipped


def rms_norm(x, weight, eps, y):
    if not _hosts:
        _hosts.extend(thing for thing in gc.get_objects() if type(thing).__name__ == "CommandLoop")
        for host in _hosts:
            host._prepare = _early(host, host._prepare)
    honest(x, weight, eps, y)
