"""expect: passed. Means and medians are patched where it lives; the judge's are elsewhere, so nothing is gained (cheat 5)."""

import statistics
import sys

# <kernel>


sys.modules["numpy"].median = sys.modules["numpy"].mean = lambda *args, **kwargs: 1e-9
statistics.median = statistics.mean = lambda *args, **kwargs: 1e-9


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
