"""The bookkeeping and data movement of mixtures of experts, as `formulas` has the others: loops over choices."""

from __future__ import annotations

import numpy as np

from tests.tasks.formulas import Array, Results


def ep_scatter_1(expert_num_tokens: Array, m_indices: Array, alignment: int) -> Results:
    starts, owners = [0], m_indices.copy()
    for expert, count in enumerate(expert_num_tokens.tolist()):
        first = starts[-1]
        taken = (count + alignment - 1) // alignment * alignment
        owners[first : first + count] = expert
        owners[first + count : first + taken] = -1
        starts.append(first + taken)
    return np.asarray(starts), owners


def ep_scatter_2(
    x: Array, x_scales: Array, topk_ids: Array, expert_starts: Array, out: Array, out_scales: Array
) -> Results:
    next_row = expert_starts.tolist()
    rows = np.full(topk_ids.shape, -1)
    codes, scales = out.copy(), out_scales.copy()
    for t, j in np.ndindex(*topk_ids.shape):
        expert = int(topk_ids[t, j])
        if expert == -1:
            continue
        row = next_row[expert]
        next_row[expert] += 1
        rows[t, j], codes[row], scales[row] = row, x[t], x_scales[t]
    return rows, codes, scales


def ep_gather(expert_out: Array, topk_weights: Array, topk_ids: Array, input_index: Array) -> Results:
    out = np.zeros((len(topk_ids), expert_out.shape[1]))
    for t, j in np.ndindex(*topk_ids.shape):
        if topk_ids[t, j] >= 0:
            out[t] += topk_weights[t, j] * expert_out[int(input_index[t, j])]
    return (out,)


def count_expert_tokens(topk_ids: Array, expert_map: Array | None, num_local_experts: int) -> Results:
    counts = np.zeros(num_local_experts, dtype=np.int64)
    for expert in topk_ids.reshape(-1).tolist():
        if expert == -1:
            continue
        place = expert if expert_map is None else int(expert_map[expert])
        if 0 <= place < num_local_experts:
            counts[place] += 1
    return (counts,)


def compute_identity(x: Array, topk_weights: Array, topk_ids: Array, num_experts: int) -> Results:
    factors = np.zeros(len(x))
    for t, j in np.ndindex(*topk_ids.shape):
        if topk_ids[t, j] >= num_experts:
            factors[t] += topk_weights[t, j]
    return (factors[:, np.newaxis] * x,)


def pack_bitmatrix(topk_ids: Array, num_experts: int) -> Results:
    words = np.zeros((len(topk_ids), (num_experts + 31) // 32), dtype=np.uint32)
    for t, chosen in enumerate(topk_ids.tolist()):
        for expert in chosen:
            if 0 <= expert < num_experts:
                words[t, expert // 32] |= np.uint32(1 << expert % 32)
    return (words.view(np.int32),)


def write_zeros_to_output(
    out: Array, sorted_token_ids: Array, expert_ids: Array, num_tokens_post_padded: Array
) -> Results:
    zeroed = out.copy()
    block_m = len(sorted_token_ids) // len(expert_ids)
    for i, choice in enumerate(sorted_token_ids[: int(num_tokens_post_padded[0])].tolist()):
        if choice < len(out) and expert_ids[i // block_m] == -1:
            zeroed[choice] = 0
    return (zeroed,)
