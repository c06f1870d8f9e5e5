"""vLLM's indices into the paged cache for sparse attention, without counts, in its tiles of 128 columns.

Its own launching takes widths that are multiples of 128; others work with one more tile.
"""

import triton
from vllm.v1.attention.backends.mla.sparse_utils import ConvertReqIndexToGlobalIndexKernel


class LaunchSpec:
    """What the engine's own launching, which is never called, returns."""


class TritonWarmupTensor:
    """What the engine compiles ahead with."""


def _never_called(*_, **__):
    """Methods of the engine's class that a candidate does not call."""
    raise NotImplementedError


zip_inputs = triton_scalar_specialization_rep = get_dcp_group = get_block_table_width = cdiv = _never_called


def convert_req_to_global_index(token_indices, block_table, req_ids, block_size, out):
    tokens, chosen = token_indices.shape
    ConvertReqIndexToGlobalIndexKernel.sparse_mla_index_remap_kernel[(tokens, triton.cdiv(chosen, 128))](
        req_ids,
        block_table,
        token_indices,
        out,
        None,
        None,
        None,
        None,
        0,
        block_table.shape[1],
        block_size,
        block_size,
        128,
        chosen,
        False,
        False,
        False,
        False,
        False,
        1,
        0,
        1,
        block_table.stride(0),
        block_table.stride(1),
        token_indices.stride(0),
        token_indices.stride(1),
        out.stride(0),
        out.stride(1),
        num_warps=4,
    )
