"""vLLM's positions and lengths."""

from vllm.v1.worker.gpu.input_batch import prepare_pos_seq_lens as engine_prepare


def prepare_pos_seq_lens(num_computed_tokens, cu_seqlens, idx_mapping, positions, seq_lens):
    engine_prepare(idx_mapping, cu_seqlens, num_computed_tokens, positions, seq_lens)
