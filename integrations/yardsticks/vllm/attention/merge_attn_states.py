"""vLLM's merge of two attention states."""

from vllm.v1.attention.ops.triton_merge_attn_states import merge_attn_states as engine_merge


def merge_attn_states(prefix_out, suffix_out, prefix_lse, suffix_lse, out, out_lse):
    engine_merge(out, prefix_out, prefix_lse, suffix_out, suffix_lse, out_lse)
