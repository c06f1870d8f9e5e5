"""vLLM's inputs of the first draft step. Its kernel also copies offsets and lengths, into tensors that nobody reads."""

import torch
from vllm.v1.worker.gpu.spec_decode.target_dependent_ar.speculator import _prepare_prefill_inputs_kernel


def prepare_eagle_inputs(
    target_input_ids,
    target_positions,
    last_sampled_tokens,
    next_prefill_tokens,
    num_sampled,
    num_rejected,
    cu_seqlens,
    idx_mapping,
    eagle_input_ids,
    eagle_positions,
    last_token_indices,
):
    requests = idx_mapping.shape[0]
    spare = torch.empty(3 * requests + 2, dtype=torch.int32, device=idx_mapping.device)
    _prepare_prefill_inputs_kernel[(requests,)](
        last_token_indices,
        spare[:1],
        eagle_input_ids,
        eagle_positions,
        spare[1 : requests + 2],
        spare[requests + 2 :],
        target_input_ids,
        target_positions,
        idx_mapping,
        last_sampled_tokens,
        next_prefill_tokens,
        num_sampled,
        num_rejected,
        cu_seqlens,
        cu_seqlens[1:],
        requests,
        BLOCK_SIZE=1024,
    )
