"""vLLM's gathered block tables, with the launch parameters of its wrapper.

The engine reads addresses of block tables from memory, where it keeps them; here they are written in every call.
"""

import torch
from vllm.v1.worker.gpu.block_table import _gather_block_tables_kernel


def gather_block_tables(block_tables, num_blocks, idx_mapping, gathered):
    groups, requests = block_tables.shape[0], idx_mapping.shape[0]
    numbers = torch.empty(3 * groups, dtype=torch.int64, device=idx_mapping.device)
    for group in range(groups):
        numbers[group : group + 1].fill_(block_tables[group].data_ptr())
        numbers[groups + group : groups + group + 1].fill_(gathered[group].data_ptr())
    numbers[2 * groups :].fill_(block_tables.stride(1))
    _gather_block_tables_kernel[(groups, requests)](
        idx_mapping,
        numbers[:groups],
        numbers[groups : 2 * groups],
        numbers[2 * groups :],
        num_blocks,
        num_blocks.stride(0),
        requests,
        idx_mapping,
        idx_mapping,
        idx_mapping,
        MASK_SLIDING_WINDOW=False,
        BLOCK_SIZE=1024,
    )
