"""vLLM's positions for multimodal rotary embeddings, with the launch parameters of its wrapper."""

from vllm.v1.worker.gpu.mm.rope import _prepare_rope_positions_kernel


def prepare_mrope_positions(
    prefill_positions, position_delta, prefill_lens, num_computed_tokens, cu_seqlens, idx_mapping, positions
):
    _prepare_rope_positions_kernel[(idx_mapping.shape[0],)](
        positions,
        positions.stride(0),
        prefill_positions,
        prefill_positions.stride(0),
        prefill_positions.stride(1),
        position_delta,
        idx_mapping,
        cu_seqlens,
        prefill_lens,
        num_computed_tokens,
        BLOCK_SIZE=1024,
        NUM_DIMS=3,
    )
