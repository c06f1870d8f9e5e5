"""expect: wrong_result. A tensor subclass is returned that would compute when it is compared (cheat 3)."""

import torch
# <kernel>


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})


def rms_norm(x, weight, eps, y):
    return torch.empty_like(y).as_subclass(Lazy)
