"""vLLM's write of heads of two lengths into a paged cache."""

from vllm.v1.attention.ops.triton_reshape_and_cache_flash import triton_reshape_and_cache_flash_diffkv


def is_quantized_kv_cache(_):
    return False


def reshape_and_cache_flash_diffkv(key, value, kv_cache, slot_mapping):
    triton_reshape_and_cache_flash_diffkv(key, value, kv_cache, slot_mapping, "auto", None, None)
