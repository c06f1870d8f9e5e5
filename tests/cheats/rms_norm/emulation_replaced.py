"""expect: rule_violation. The interpreter's launcher is replaced by something quicker, a kernel in name only (cheat 53).

Not caught yet on the CPU: the emulation lives in the candidate's process; speedups there are those of an emulation and say so.
Means nothing on a GPU: there is no emulation.
"""

import torch
# <kernel>


class Quick:
    def __getitem__(self, grid):
        return lambda x, weight, y, columns, eps, BLOCK: y.copy_(
            x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + eps) * weight.float()
        )


row_kernel = Quick()


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
