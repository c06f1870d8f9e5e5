"""expect: timing_mismatch, emulated: passed. The pass that is subtracted takes a while for nothing, and the host's clock lies to match; on the CPU nothing is subtracted (cheat 59)."""

import sys
import time
# <kernel>


passes = sys.modules["arena.worker.passes"]
_longest = [0]


def _padded(run, while_s):
    def padded(self):
        _longest[0] = max(_longest[0], len(self.sets))
        if len(self.sets) != 1 and len(self.sets) < _longest[0] / 4:
            time.sleep(while_s)
            return run(self)
        return max(run(self) - while_s, 0.0)

    return padded


passes.PlainPass.run = _padded(passes.PlainPass.run, 0.005)
passes.GraphPass.run = _padded(passes.GraphPass.run, 0.0005)


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
