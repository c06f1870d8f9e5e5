"""The operators that prepare the batch of a serving engine and keep its state, as `formulas` has the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.tasks.formulas import Array, Results


def _requests(idx_mapping: Array, cu_seqlens: Array) -> Iterator[tuple[int, int, int, int]]:
    """Of each request of the batch: its number, its slot, its first token, how many tokens it has."""
    starts = cu_seqlens.tolist()
    for request, slot in enumerate(idx_mapping.tolist()):
        yield request, slot, starts[request], starts[request + 1] - starts[request]


# Places in the paged cache


def compute_slot_mappings(
    positions: Array,
    block_table: Array,
    idx_mapping: Array,
    cu_seqlens: Array,
    padded_tokens: int,
    block_size: int,
) -> Results:
    slot_mapping = np.full(padded_tokens, -1, dtype=np.int64)
    for _, slot, first, count in _requests(idx_mapping, cu_seqlens):
        for token in range(first, first + count):
            block, place = divmod(int(positions[token]), block_size)
            slot_mapping[token] = int(block_table[slot, block]) * block_size + place
    return (slot_mapping,)


def convert_req_to_global_index(
    req_ids: Array, block_table: Array, token_indices: Array, max_blocks: int, block_size: int
) -> Results:
    out = np.full(token_indices.shape, -1, dtype=np.int32)
    for token, request in enumerate(req_ids.tolist()):
        for k, position in enumerate(token_indices[token].tolist()):
            block, place = divmod(position, block_size)
            if position >= 0 and block < max_blocks:
                out[token, k] = int(block_table[request, block]) * block_size + place
    return (out,)


# Before a step


def prepare_pos_seq_lens(
    idx_mapping: Array, cu_seqlens: Array, num_computed_tokens: Array, positions: Array, num_slots: int
) -> Results:
    written, seq_lens = positions.copy(), np.zeros(num_slots, dtype=np.int32)
    for request, slot, first, count in _requests(idx_mapping, cu_seqlens):
        computed = int(num_computed_tokens[slot])
        seq_lens[request] = computed + count
        for i in range(count):
            written[first + i] = computed + i
    return seq_lens, written


def prepare_mrope_positions(
    idx_mapping: Array,
    cu_seqlens: Array,
    num_computed_tokens: Array,
    prefill_lens: Array,
    prefill_positions: Array,
    position_delta: Array,
    positions: Array,
) -> Results:
    written = positions.copy()
    for _, slot, first, count in _requests(idx_mapping, cu_seqlens):
        computed = int(num_computed_tokens[slot])
        in_prefill = computed < prefill_lens[slot]
        for place in range(computed, computed + count):
            token = first + place - computed
            if in_prefill:
                written[:, token] = prefill_positions[slot, :, place]
            else:
                written[:, token] = place + int(position_delta[slot])
    return (written,)


def prepare_prefill_inputs(
    idx_mapping: Array,
    cu_seqlens: Array,
    num_computed_tokens: Array,
    prefill_lens: Array,
    token_ids: Array,
    input_ids: Array,
    next_prefill_tokens: Array,
) -> Results:
    ids, following = input_ids.copy(), next_prefill_tokens.copy()
    for _, slot, first, count in _requests(idx_mapping, cu_seqlens):
        computed, prompt = int(num_computed_tokens[slot]), int(prefill_lens[slot])
        if computed >= prompt:
            continue
        for i in range(count):
            ids[first + i] = token_ids[slot, computed + i]
        if computed + count < prompt:
            following[slot] = token_ids[slot, computed + count]
    return ids, following


# After a step


def post_update(
    sampled_token_ids: Array,
    num_sampled: Array,
    num_rejected: Array,
    idx_mapping: Array,
    cu_seqlens: Array,
    num_computed_tokens: Array,
    last_sampled_tokens: Array,
    output_counts: Array,
    token_ids: Array,
    seq_lens: Array,
) -> Results:
    computed, last, counts = num_computed_tokens.copy(), last_sampled_tokens.copy(), output_counts.copy()
    listed, lengths = token_ids.copy(), seq_lens.copy()
    for request, slot, _, queries in _requests(idx_mapping, cu_seqlens):
        for token in sampled_token_ids[request, : int(num_sampled[request])].tolist():
            counts[slot, token] += 1
            listed[slot, lengths[slot]] = token
            lengths[slot] += 1
            last[slot] = token
        computed[slot] += queries - int(num_rejected[request])
    return computed, last, counts, listed, lengths
