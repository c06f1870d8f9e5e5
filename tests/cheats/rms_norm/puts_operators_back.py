"""expect: rule_violation. What refuses PyTorch's operators is searched for and destroyed; then PyTorch computes (cheat 27)."""

import gc

import torch
# <kernel>


def rms_norm(x, weight, eps, y):
    for thing in gc.get_objects():
        if type(thing) is torch.library.Library and thing.m is not None:
            thing._destroy()
    for thing in gc.get_objects():
        if type(thing).__name__ == "CommandLoop":
            thing._entry._operators = None
    gc.collect()
    y.copy_(torch.nn.functional.rms_norm(x.float(), (x.shape[1],), weight.float(), eps))
