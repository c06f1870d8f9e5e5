"""expect: out_of_bounds. It writes past its end as soon as it is woken for a pass, and the same again in it (cheats 13, 35)."""

import sys
# <kernel>


@triton.jit
def stray_kernel(y_ptr, index):
    tl.store(y_ptr + index, 1.0)


_calls = {}
_loop = sys.modules["arena.worker.command_loop"].CommandLoop
_prepare = _loop._prepare


def _write_and_prepare(self, *message):
    _prepare(self, *message)
    if self._binding is not None:
        y = self._binding.values[0][-1]
        if _calls.get(y.shape, 0) > 5:
            stray_kernel[(1,)](y, y.numel())


_loop._prepare = _write_and_prepare


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
    _calls[y.shape] = _calls.get(y.shape, 0) + 1
    if _calls[y.shape] > 7:
        stray_kernel[(1,)](y, y.numel())
