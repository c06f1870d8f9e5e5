"""expect: timing_mismatch or wrong_result, emulated: passed. The flag that ends a timed pass is set when four fifths of its time have gone by; on the CPU there are no flags (cheat 58)."""

import sys
import time
# <kernel>


flags = sys.modules["arena.processes.flags"]
_takes = {}


def _run(self, timed_pass):
    which = timed_pass.__self__
    if which not in _takes:
        _honest(self, timed_pass)
        _takes[which] = 0.8 * self.worker_s
        return
    self._passes += 1
    self._words[flags._READY] = self._passes
    while self._words[flags._GO] != self._passes:
        pass
    began = time.perf_counter()
    which._graph.replay()
    while time.perf_counter() - began < _takes[which]:
        pass
    self._numbers[flags._SECONDS] = _takes[which]
    self._words[flags._DONE] = self._passes
    which._platform.synchronize()


_honest = flags.Flags.run
flags.Flags.run = _run


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
