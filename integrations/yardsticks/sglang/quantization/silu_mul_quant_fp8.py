"""SGLang's activation of a mixture of experts with a static scale, on one tensor of rows.

The engine reads the number of rows from memory, and does not clamp: conversion to fp8 saturates on NVIDIA GPUs.
"""

import torch
from sglang.kernels.ops.moe.ep_moe_kernels import silu_mul_static_tensorwise_quant_for_cutlass_moe


def _get_launch_config_1d(device, numel):
    """As the engine: blocks of 512 or 1,024 values, and at most 8 waves of blocks of 1,024 threads."""
    properties = torch.cuda.get_device_properties(device) if torch.cuda.is_available() else None
    units = properties.multi_processor_count if properties else 4
    most = units * (properties.max_threads_per_multi_processor if properties else 2048) // 1024
    block = 512 if -(-numel // 512) <= most else 1024
    return (min(-(-numel // block), 8 * most),), block


def silu_mul_quant_fp8(x, scales, q):
    rows, columns = q.shape
    count = torch.empty(1, dtype=torch.int32, device=x.device).fill_(rows)
    silu_mul_static_tensorwise_quant_for_cutlass_moe(x, q, scales, count, rows, columns)
