"""expect: passed or wrong_result or timing_mismatch, emulated: passed. In three rounds of four in one placement of the buffers a long pass is said to be done at half of its time; a case that is not failed for it is left undecided, without credit (cheat 58)."""

import sys
import time
# <kernel>


flags = sys.modules["arena.processes.flags"]
_passes = sys.modules["arena.worker.passes"]
_capture = _passes.GraphPass.__init__
_placements = [0]
_longest = [0]
_rounds = [0]
_takes = {}


def _captured(self, call, platform, sets):
    _capture(self, call, platform, sets)
    _longest[0] = max(_longest[0], len(sets))
    if len(sets) == 1:  # the last of three that are arranged for a placement
        _placements[0] += 1
        _rounds[0] = 0


def _run(self, timed_pass):
    which = timed_pass.__self__
    if len(which.sets) < max(_longest[0] / 4, 2):
        _honest(self, timed_pass)
        return
    _rounds[0] += 1
    if which not in _takes or _placements[0] % 2 or not _rounds[0] % 4:
        _honest(self, timed_pass)
        _takes[which] = self.worker_s
        return
    self._passes += 1
    self._words[flags._READY] = self._passes
    while self._words[flags._GO] != self._passes:
        pass
    began = time.perf_counter()
    which._graph.replay()
    while time.perf_counter() - began < 0.5 * _takes[which]:
        pass
    self._numbers[flags._SECONDS] = 0.5 * _takes[which]
    self._words[flags._DONE] = self._passes
    which._platform.synchronize()


_honest = flags.Flags.run
flags.Flags.run = _run
_passes.GraphPass.__init__ = _captured


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
