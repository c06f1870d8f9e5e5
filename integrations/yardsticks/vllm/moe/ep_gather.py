"""vLLM's gather of experts' results."""

from vllm.model_executor.layers.fused_moe.deep_gemm_utils import ep_gather as engine_gather


def ep_gather(expert_out, topk_weights, topk_ids, input_index, out):
    engine_gather(expert_out, topk_ids, topk_weights, input_index, None, out)
