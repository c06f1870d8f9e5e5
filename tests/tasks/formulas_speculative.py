"""The operators of speculative decoding, as `formulas` has the others: loops over requests and their places.

A request has a place in the batch, and a slot that it keeps from step to step; tensors of slots are indexed by
`idx_mapping`. Offsets `cu_…` hold where the places of each request begin, and last where those of all end.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.tasks.formulas import Array, Results


def _spans(offsets: Array) -> Iterator[tuple[int, int, int]]:
    """For every request its number, its first place and the place after its last."""
    ends = offsets.tolist()
    for r in range(len(ends) - 1):
        yield r, ends[r], ends[r + 1]


# What the target model keeps


def rejection_greedy_sample(
    draft_token_ids: Array,
    target_token_ids: Array,
    bonus_token_ids: Array,
    cu_num_draft_tokens: Array,
    is_greedy: Array | None,
    output_token_ids: Array,
) -> Results:
    y = output_token_ids.copy()
    for r, begin, end in _spans(cu_num_draft_tokens):
        if is_greedy is not None and not is_greedy[r]:
            continue
        tokens = [*target_token_ids[begin:end].tolist(), int(bonus_token_ids[r])]
        right = 0
        while begin + right < end and draft_token_ids[begin + right] == target_token_ids[begin + right]:
            right += 1
        y[r] = -1
        y[r, : right + 1] = tokens[: right + 1]
    return (y,)


def rejection_random_sample(
    draft_token_ids: Array,
    draft_probs: Array | None,
    target_probs: Array,
    bonus_token_ids: Array,
    recovered_token_ids: Array,
    uniform_probs: Array,
    cu_num_draft_tokens: Array,
    is_greedy: Array,
    output_token_ids: Array,
) -> Results:
    y = output_token_ids.copy()
    for r, begin, end in _spans(cu_num_draft_tokens):
        if is_greedy[r]:
            continue
        row = []
        for t in range(begin, end):
            token = int(draft_token_ids[t])
            q = 1.0 if draft_probs is None else draft_probs[t, token]
            if not (q > 0 and target_probs[t, token] >= uniform_probs[t] * q):
                row.append(int(recovered_token_ids[t]))
                break
            row.append(token)
        else:
            row.append(int(bonus_token_ids[r]))
        y[r] = row + [-1] * (y.shape[1] - len(row))
    return (y,)


def rejection_sample(input_ids: Array, target_token_ids: Array, cu_num_logits: Array, max_spec_len: int) -> Results:
    counts = []
    sampled = np.full((len(cu_num_logits) - 1, max_spec_len + 1), -1, dtype=np.int64)
    for r, begin, end in _spans(cu_num_logits):
        sampled[r, 0] = target_token_ids[begin]
        count = 1
        for t in range(begin + 1, end):
            if input_ids[t] != target_token_ids[t - 1]:
                break
            sampled[r, count] = target_token_ids[t]
            count += 1
        counts.append(count)
    return sampled, np.asarray(counts)


def sample_recovered_tokens(
    draft_token_ids: Array,
    draft_probs: Array | None,
    target_probs: Array,
    noise: Array,
    cu_num_draft_tokens: Array,
) -> Results:
    """The first of the best tokens, if several are equally good."""
    tokens = np.zeros(len(draft_token_ids), dtype=np.int64)
    for r, begin, end in _spans(cu_num_draft_tokens):
        for t in range(begin, end):
            weight = target_probs[t].copy()
            if draft_probs is None:
                weight[draft_token_ids[t]] = 0
            else:
                difference = target_probs[t].astype(np.float32) - draft_probs[t].astype(np.float32)
                weight = np.maximum(difference.astype(np.float64), 0)
            tokens[t] = np.argmax(weight / noise[r])
    return (tokens,)


def get_num_sampled_and_rejected(
    seq_lens: Array, cu_num_logits: Array, prefill_lens: Array, idx_mapping: Array, num_sampled: Array
) -> Results:
    sampled, rejected = num_sampled.copy(), np.zeros_like(num_sampled)
    for r, begin, end in _spans(cu_num_logits):
        if seq_lens[r] < prefill_lens[idx_mapping[r]]:
            sampled[r] = 0
        else:
            rejected[r] = end - begin - num_sampled[r]
    return rejected, sampled


# Inputs of the next step


def combine_sampled_and_draft_tokens(
    input_ids: Array,
    last_sampled_tokens: Array,
    draft_token_ids: Array,
    cu_seqlens: Array,
    cu_num_logits: Array,
    seq_lens: Array,
    prefill_lens: Array,
    idx_mapping: Array,
) -> Results:
    ids, places = input_ids.copy(), []
    for r, begin, end in _spans(cu_num_logits):
        slot, count = int(idx_mapping[r]), end - begin
        first = int(cu_seqlens[r + 1]) - count
        places += list(range(first, first + count))
        if seq_lens[r] > prefill_lens[slot]:
            following = [last_sampled_tokens[slot], *draft_token_ids[slot]]
            ids[first : first + count] = following[:count]
    return np.asarray(places), ids


def expand(x: Array, cu_seqlens: Array, replace_from: int, replace_to: int) -> Results:
    expanded: list[object] = []
    for r, begin, end in _spans(cu_seqlens):
        expanded += [replace_to if x[r] == replace_from else x[r]] * (end - begin)
    return (np.asarray(expanded, dtype=x.dtype),)


# EAGLE: inputs of the draft model


def prepare_eagle_inputs(
    target_input_ids: Array,
    target_positions: Array,
    last_sampled_tokens: Array,
    next_prefill_tokens: Array,
    num_sampled: Array,
    num_rejected: Array,
    cu_seqlens: Array,
    idx_mapping: Array,
    eagle_input_ids: Array,
    eagle_positions: Array,
) -> Results:
    ids, positions, last = eagle_input_ids.copy(), eagle_positions.copy(), []
    for r, begin, end in _spans(cu_seqlens):
        final = end - int(num_rejected[r]) - 1
        ids[begin:final] = target_input_ids[begin + 1 : final + 1]
        following = last_sampled_tokens if num_sampled[r] > 0 else next_prefill_tokens
        ids[final] = following[idx_mapping[r]]
        positions[begin : final + 1] = target_positions[begin : final + 1]
        last.append(final)
    return np.asarray(last), ids, positions


def prepare_eagle_decode(
    draft_token_ids: Array,
    output_hidden_states: Array,
    target_positions: Array,
    target_seq_lens: Array,
    num_rejected: Array,
    last_token_indices: Array,
    max_model_len: int,
    max_num_reqs: int,
) -> Results:
    positions, rows, lengths = [], [], [0] * max_num_reqs
    for r, t in enumerate(last_token_indices.tolist()):
        positions.append(min(int(target_positions[t]) + 1, max_model_len - 1))
        rows.append(output_hidden_states[t])
        lengths[r] = min(int(target_seq_lens[r]) - int(num_rejected[r]) + 1, max_model_len)
    return draft_token_ids, np.asarray(positions), np.stack(rows), np.asarray(lengths)


def update_eagle_inputs(
    draft_token_ids: Array,
    output_hidden_states: Array,
    input_ids: Array,
    hidden_states: Array,
    positions: Array,
    seq_lens: Array,
    max_model_len: int,
) -> Results:
    ids, states, places, lengths = input_ids.copy(), hidden_states.copy(), positions.copy(), seq_lens.copy()
    for r, token in enumerate(draft_token_ids.tolist()):
        ids[r] = token
        states[r] = output_hidden_states[r]
        places[r] = min(int(positions[r]) + 1, max_model_len - 1)
        lengths[r] = min(int(seq_lens[r]) + 1, max_model_len)
    return ids, states, places, lengths


def eagle_prepare_inputs_padded(cu_num_draft_tokens: Array, valid_counts: Array, cu_seqlens: Array) -> Results:
    samples, rejected = [], []
    for r, begin, end in _spans(cu_num_draft_tokens):
        rejected.append(end - begin + 1 - int(valid_counts[r]) if end > begin else 0)
        samples.append(int(cu_seqlens[r + 1]) - 1 - rejected[r])
    return np.asarray(samples), np.asarray(rejected)


def eagle_prepare_next_token_padded(
    sampled_token_ids: Array, backup_token_ids: Array, discard: Array, vocab_size: int
) -> Results:
    following, counts = [], []
    for r, row in enumerate(sampled_token_ids.tolist()):
        valid = [] if discard[r] else [token for token in row if token != -1 and token < vocab_size]
        following.append(valid[-1] if valid else int(backup_token_ids[r]))
        counts.append(len(valid))
    return np.asarray(following), np.asarray(counts)


def copy_and_expand_eagle_inputs(
    target_input_ids: Array,
    target_positions: Array,
    next_token_ids: Array,
    num_rejected: Array,
    cu_seqlens: Array,
    shift_input_ids: bool,
    padding_token_id: int,
    mask_token_id: int,
    num_extra: int,
) -> Results:
    ids: list[int] = []
    positions: list[int] = []
    kinds: list[int] = []
    samples: list[int] = []
    for r, begin, end in _spans(cu_seqlens):
        rejected = int(num_rejected[r])
        copied = target_input_ids[begin + int(shift_input_ids) : end - rejected].tolist()
        masks = end - begin - rejected + num_extra - len(copied) - 1
        samples.append(len(ids) + len(copied))
        ids += [*copied, int(next_token_ids[r]), *[mask_token_id] * masks, *[padding_token_id] * rejected]
        kinds += [*[0] * len(copied), 1, *[2] * masks, *[3] * rejected]
        start = int(target_positions[begin])
        positions += [*range(start, start + len(copied) + 1 + masks), *[0] * rejected]
    return np.asarray(ids), np.asarray(positions), np.asarray(kinds), np.asarray(samples)
