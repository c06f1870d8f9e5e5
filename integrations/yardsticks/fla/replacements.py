"""What replaces flash-linear-attention's tests of the machine in every adapter."""

import torch
import triton

HOPPER = torch.version.hip is None and torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 9
IS_NVIDIA_HOPPER = HOPPER
IS_NVIDIA_BLACKWELL = (
    torch.version.hip is None and torch.cuda.is_available() and torch.cuda.get_device_capability()[0] > 9
)
IS_NVIDIA = torch.version.hip is None
IS_AMD = not IS_NVIDIA
IS_INTEL = False
IS_GATHER_SUPPORTED = True
IS_TMA_SUPPORTED = False
TRITON_ABOVE_3_4_0 = True
TRITON_ABOVE_3_7_1 = False
TRITON_ABOVE_3_8_0 = False
autotune_cache_kwargs = {}


def check_shared_mem(*_):
    """Whether a GPU has as much shared memory as an A100."""
    return True


def fla_cache_autotune(configs, key=None, **kwargs):
    """Triton's tuning; the engine also reads results from files."""
    return triton.autotune(configs, key or [], **kwargs)
