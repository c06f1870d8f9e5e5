"""expect: wrong_result. The judge's comparison is replaced in memory; it is only a copy that nobody runs (cheats 8 and 34)."""

import torch
# <kernel>


import arena.judge.verify

arena.judge.verify.check_outputs = lambda *args: arena.judge.verify.GOOD
torch.equal = torch.allclose = lambda *args, **kwargs: True


def rms_norm(x, weight, eps, y):
    y.zero_()
