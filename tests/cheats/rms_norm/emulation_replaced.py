"""expect: rule_violation. The interpreter's own NumPy computes it, a kernel copies what it found (cheat 53).

Means nothing on a GPU: there is no emulation.
"""

import torch
import triton.runtime.interpreter
# <kernel>


def rms_norm(x, weight, eps, y):
    numpy = triton.runtime.interpreter.np
    rows, scale = x.to(torch.float32).numpy(), weight.to(torch.float32).numpy()
    inverse_rms = 1.0 / numpy.sqrt(numpy.square(rows).mean(-1, keepdims=True) + eps)
    copy(torch.from_numpy(rows * inverse_rms * scale), y)
