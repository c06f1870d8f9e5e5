"""vLLM's update after sampling."""

from vllm.v1.worker.gpu.input_batch import post_update as engine_update


def post_update(
    sampled_token_ids,
    num_sampled,
    num_rejected,
    cu_seqlens,
    idx_mapping,
    num_computed_tokens,
    last_sampled_tokens,
    output_counts,
    token_ids,
    seq_lens,
):
    engine_update(
        idx_mapping,
        num_computed_tokens,
        last_sampled_tokens,
        output_counts,
        sampled_token_ids,
        num_sampled,
        num_rejected,
        cu_seqlens,
        token_ids,
        seq_lens,
    )
