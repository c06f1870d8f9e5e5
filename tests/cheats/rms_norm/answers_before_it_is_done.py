"""expect: timing_mismatch or wrong_result. A pass is said to be over when four fifths of its time have gone by (cheat 58).

Means nothing on the CPU: a pass there is over when its last call has returned.
"""

import sys
import time
# <kernel>


passes = sys.modules["arena.worker.passes"]
_run = passes.GraphPass.run
_takes = {}


def _early(self):
    if self not in _takes:
        _takes[self] = 0.8 * _run(self)
        return _takes[self]
    began = time.perf_counter()
    self._graph.replay()
    while time.perf_counter() - began < _takes[self]:
        pass
    return _takes[self]


passes.GraphPass.run = _early


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
