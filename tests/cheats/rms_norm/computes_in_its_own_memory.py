"""expect: crash. A kernel copies the input into a tensor of the candidate's own, where the host reads it (cheat 79)."""

import ctypes

import torch

# <kernel>


def rms_norm(x, weight, eps, y):
    own = torch.empty_like(x)
    own.copy_(x)
    ctypes.string_at(own.untyped_storage().data_ptr(), own.numel() * own.element_size())
    honest(x, weight, eps, y)
