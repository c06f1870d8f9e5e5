"""Allow-lists, biases and stop tokens in one launch: a program for a part of one row does all steps there.

The baseline has five launches, each of which waits for the one before it, and keeps the allowed logits in scratch
memory meanwhile. Filling a row takes a program for every 4 KB, each of which waits for its slot and then for its count
before its stores: 152576 programs for 1024 rows of 151936 logits, those without an allow-list included.

Here a program has 64 KB of a row, a sixteenth of the programs, and one launch does all. It reads the lists at once,
before their counts are known, and takes the tokens that lie in its part. Their logits wait in registers while the part
is filled with stores of 16 bytes. Barriers within the program are between the steps, as launches were. Lists are at
most 1024 tokens long: 4 KB, from the second-level cache after their first read, beside 64 KB of stores. Programs that
run at the same time fill neighbouring parts.
"""

import triton
import triton.language as tl

PART = 16384
BLOCK = 2048


@triton.jit
def _adjust_part(
    logits_ptr,
    allowed_ptr,
    num_allowed_ptr,
    bias_ids_ptr,
    bias_ptr,
    num_bias_ptr,
    stop_ptr,
    num_stop_ptr,
    min_lens_ptr,
    idx_mapping_ptr,
    positions_ptr,
    vocab_size,
    row_stride,
    MAX_ALLOWED: tl.constexpr,
    MAX_BIAS: tl.constexpr,
    MAX_STOP: tl.constexpr,
    ALLOWED: tl.constexpr,
    BIASES: tl.constexpr,
    STOPS: tl.constexpr,
    PART: tl.constexpr,
    BLOCK: tl.constexpr,
):
    req = tl.program_id(1).to(tl.int64)
    begin = tl.program_id(0) * PART
    end = tl.minimum(begin + PART, vocab_size)
    row_ptr = logits_ptr + req * row_stride
    slot = tl.load(idx_mapping_ptr + req).to(tl.int64)
    # Lists are read as if nothing were known of their alignment, and blocks to fill are longer than any list. Else, a
    # thread would read four tokens in a row and hand three of them over, in shared memory, before their logits change.
    allowed_at = tl.multiple_of(tl.arange(0, ALLOWED), 1)
    bias_at = tl.multiple_of(tl.arange(0, BIASES), 1)
    stop_at = tl.multiple_of(tl.arange(0, STOPS), 1)
    allowed = tl.load(allowed_ptr + slot * MAX_ALLOWED + allowed_at, mask=allowed_at < MAX_ALLOWED, other=-1)
    biased = tl.load(bias_ids_ptr + slot * MAX_BIAS + bias_at, mask=bias_at < MAX_BIAS, other=-1)
    stops = tl.load(stop_ptr + slot * MAX_STOP + stop_at, mask=stop_at < MAX_STOP, other=-1)
    num_allowed = tl.load(num_allowed_ptr + slot)
    num_bias = tl.load(num_bias_ptr + slot)
    num_stop = tl.load(num_stop_ptr + slot)
    early = tl.load(positions_ptr + req) < tl.load(min_lens_ptr + slot)
    bias_here = (bias_at < num_bias) & (biased >= begin) & (biased < end)
    bias = tl.load(bias_ptr + slot * MAX_BIAS + bias_at, mask=bias_here, other=0.0)
    if num_allowed > 0:
        keep = (allowed_at < num_allowed) & (allowed >= begin) & (allowed < end)
        kept = tl.load(row_ptr + allowed, mask=keep, other=0.0)
        tl.debug_barrier()
        nothing = tl.full((BLOCK,), -float("inf"), tl.float32)
        for start in range(begin, end, BLOCK):
            tokens = start + tl.arange(0, BLOCK)
            tl.store(row_ptr + tokens, nothing, mask=tokens < vocab_size)
        tl.debug_barrier()
        tl.store(row_ptr + allowed, kept, mask=keep)
        tl.debug_barrier()
    logits = tl.load(row_ptr + biased, mask=bias_here, other=0.0)
    tl.store(row_ptr + biased, logits + bias, mask=bias_here)
    if early:
        tl.debug_barrier()
        stop_here = (stop_at < num_stop) & (stops >= begin) & (stops < end)
        tl.store(row_ptr + stops, -float("inf"), mask=stop_here)


def logit_bias(
    logits,
    allowed_token_ids,
    num_allowed,
    bias_token_ids,
    bias,
    num_bias,
    stop_token_ids,
    num_stop,
    min_lens,
    idx_mapping,
    positions,
):
    num_reqs, vocab_size = logits.shape
    max_allowed, max_bias, max_stop = (ids.shape[1] for ids in (allowed_token_ids, bias_token_ids, stop_token_ids))
    _adjust_part[(triton.cdiv(vocab_size, PART), num_reqs)](
        logits,
        allowed_token_ids,
        num_allowed,
        bias_token_ids,
        bias,
        num_bias,
        stop_token_ids,
        num_stop,
        min_lens,
        idx_mapping,
        positions,
        vocab_size,
        logits.stride(0),
        MAX_ALLOWED=max_allowed,
        MAX_BIAS=max_bias,
        MAX_STOP=max_stop,
        ALLOWED=triton.next_power_of_2(max_allowed),
        BIASES=triton.next_power_of_2(max_bias),
        STOPS=triton.next_power_of_2(max_stop),
        PART=PART,
        BLOCK=BLOCK,
    )
