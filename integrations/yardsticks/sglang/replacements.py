"""What replaces SGLang's settings in every adapter."""

import torch

autotune_cache_kwargs = {}
_is_hip = torch.version.hip is not None
_is_gfx1250 = False
