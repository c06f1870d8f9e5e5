"""expect: wrong_result. The judge's comparison is replaced in memory; it is only a copy that nobody runs (cheats 8 and 34)."""

import importlib

import torch
# <kernel>


verify = importlib.import_module("arena.judge.correctness.verify")
verify.check_results = lambda *args: verify.Finding(verify.Status.PASSED)
torch.equal = torch.allclose = lambda *args, **kwargs: True


def rms_norm(x, weight, eps, y):
    y.zero_()
