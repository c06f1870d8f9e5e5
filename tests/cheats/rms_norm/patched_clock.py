"""expect: timing_mismatch. Every clock of its process is slowed, so that it seems fast (cheat 4)."""

import time

import torch
# <kernel>


_real = time.perf_counter
time.perf_counter = lambda: _real() * 1e-3
torch.cuda.Event.elapsed_time = lambda self, other: 1e-3


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
