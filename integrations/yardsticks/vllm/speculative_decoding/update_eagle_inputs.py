"""vLLM's next draft step. Its kernel also notes the tokens and advances another position, in tensors nobody reads."""

import torch
from vllm.v1.worker.gpu.spec_decode.target_dependent_ar.speculator import _update_draft_inputs_kernel


def update_eagle_inputs(
    draft_token_ids, output_hidden_states, input_ids, hidden_states, positions, seq_lens, max_model_len
):
    requests, hidden = output_hidden_states.shape
    spare = torch.empty(2 * requests + 1, dtype=torch.int64, device=positions.device).zero_()
    _update_draft_inputs_kernel[(requests,)](
        spare[1 : requests + 1],
        1,
        hidden_states,
        hidden_states.stride(0),
        input_ids,
        positions,
        spare[requests + 1 :],
        seq_lens,
        draft_token_ids,
        spare[:1],
        output_hidden_states,
        output_hidden_states.stride(0),
        hidden,
        max_model_len,
        2,
        BLOCK_SIZE=1024,
        ADVANCE_DRAFT_POSITIONS=True,
    )
