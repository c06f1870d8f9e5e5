"""expect: passed. It is slow while it is checked and while its passes are planned, in the hope of short ones (cheat 9)."""

import sys
import time

import torch
# <kernel>

_SLOW_S = 0.01
_passes = sys.modules["arena.worker.passes"]
_shape = [None]
_runs = {}


def _slow_at_first(run):
    def slow(self):
        which = _shape[0], len(self.sets)
        _runs[which] = _runs.get(which, 0) + 1
        if _runs[which] <= 2:
            time.sleep(_SLOW_S * len(self.sets))
        return run(self)

    return slow


_passes.GraphPass.run = _slow_at_first(_passes.GraphPass.run)


def rms_norm(x, weight, eps, y):
    _shape[0] = tuple(y.shape)
    if x.is_cuda and not torch.cuda.is_current_stream_capturing():
        time.sleep(_SLOW_S)
    honest(x, weight, eps, y)
