"""vLLM's expansion to tokens, with its limit on the tokens of a request."""

from vllm.v1.sample.rejection_sampler import MAX_SPEC_LEN, expand_kernel


def expand(x, cu_seqlens, replace_from, replace_to, expanded):
    expand_kernel[(x.shape[0],)](expanded, x, cu_seqlens[1:], replace_from, replace_to, MAX_NUM_TOKENS=MAX_SPEC_LEN)
