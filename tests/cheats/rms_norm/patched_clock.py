"""expect: timing_mismatch, emulated: passed. Every clock of its process is slowed, so that it seems fast; on the CPU none of them counts (cheat 4)."""

import time

import torch
# <kernel>


_real = time.perf_counter
time.perf_counter = lambda: _real() * 1e-3
torch.cuda.Event.elapsed_time = lambda self, other: 1e-3


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
