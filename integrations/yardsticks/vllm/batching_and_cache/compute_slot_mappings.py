"""vLLM's slot mappings for one group of caches, with the launch parameters of its wrapper.

The engine reads addresses of block tables from memory, where it keeps them; here they are written in every call.
"""

import torch
from vllm.v1.worker.gpu.block_table import _compute_slot_mappings_kernel


def compute_slot_mappings(positions, block_table, cu_seqlens, idx_mapping, block_size, slot_mapping):
    device = positions.device
    address = torch.empty(1, dtype=torch.int64, device=device).fill_(block_table.data_ptr())
    stride = torch.empty(1, dtype=torch.int64, device=device).fill_(block_table.stride(0))
    size = torch.empty(1, dtype=torch.int32, device=device).fill_(block_size)
    enabled = torch.empty(1, dtype=torch.bool, device=device).fill_(True)
    _compute_slot_mappings_kernel[(1, idx_mapping.shape[0] + 1)](
        slot_mapping.shape[0],
        idx_mapping,
        cu_seqlens,
        positions,
        address,
        stride,
        size,
        enabled,
        enabled,
        slot_mapping,
        slot_mapping.stride(0),
        0,
        CP_SIZE=1,
        CP_INTERLEAVE=1,
        PAD_ID=-1,
        TRITON_BLOCK_SIZE=1024,
    )
