"""vLLM's padded inputs of EAGLE."""

from vllm.v1.spec_decode.utils import eagle_prepare_inputs_padded_kernel


def eagle_prepare_inputs_padded(cu_num_draft_tokens, valid_counts, cu_seqlens, sample_indices, num_rejected):
    requests = valid_counts.shape[0]
    eagle_prepare_inputs_padded_kernel[(requests,)](
        cu_num_draft_tokens[1:], valid_counts, cu_seqlens, sample_indices, num_rejected, requests
    )
