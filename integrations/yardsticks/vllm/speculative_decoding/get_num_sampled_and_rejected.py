"""vLLM's counts of sampled and rejected tokens."""

from vllm.v1.worker.gpu.input_batch import _get_num_sampled_and_rejected_kernel


def get_num_sampled_and_rejected(seq_lens, cu_num_logits, prefill_lens, idx_mapping, num_sampled, num_rejected):
    _get_num_sampled_and_rejected_kernel[(idx_mapping.shape[0],)](
        num_sampled, num_rejected, seq_lens, cu_num_logits, idx_mapping, prefill_lens
    )
