"""vLLM's step of a causal convolution. It leaves rows of padding as they are, which are cleared first.

The engine keeps as many inputs as the convolution needs, so longer states differ. It multiplies in the dtype of its
input, so 16-bit cases may exceed the tolerance.
"""

from vllm.model_executor.layers.mamba.ops.causal_conv1d import causal_conv1d_update as engine_update


def causal_conv1d_update(x, weight, bias, idx_mapping, conv_state, silu, y):
    y.zero_()
    engine_update(
        x,
        conv_state.transpose(1, 2),
        weight,
        bias,
        silu,
        conv_state_indices=idx_mapping,
        null_block_id=-1,
        out=y,
    )
