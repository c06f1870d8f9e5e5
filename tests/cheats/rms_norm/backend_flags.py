"""expect: passed. Global flags are changed; they are its own process's only, so nothing is gained (cheat 34)."""

import os

import torch
# <kernel>


torch.backends.cuda.matmul.allow_tf32 = True
torch.use_deterministic_algorithms(False)
os.environ["TRITON_F32_DEFAULT"] = "tf32"


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
