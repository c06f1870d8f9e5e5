"""expect: wrong_result in heldout-29. State: tiles of 64 cross the ends of chunks of 96."""

import triton
import triton.language as tl


@triton.jit
def add_earlier_chunks(
    query_ptr,
    slopes_ptr,
    states_ptr,
    out_ptr,
    seq_len,
    num_heads,
    head_dim,
    value_dim,
    chunk_size,
    num_chunks,
    FLAT: tl.constexpr,
    TOKENS: tl.constexpr,
    KEYS: tl.constexpr,
    VALUES: tl.constexpr,
):
    index = tl.program_id(0).to(tl.int64)
    if FLAT:
        # Tiles of a sequence, each in one chunk.
        tiles = tl.cdiv(seq_len, TOKENS)
        t = index % tiles * TOKENS + tl.arange(0, TOKENS)
        chunk = index % tiles * TOKENS // chunk_size
        head = index // tiles % num_heads
        batch = index // tiles // num_heads
        i = t % chunk_size
        inside = t < seq_len
    else:
        chunk = index % num_chunks
        head = index // num_chunks % num_heads
        batch = index // num_chunks // num_heads
        i = tl.program_id(1) * TOKENS + tl.arange(0, TOKENS)
        t = chunk * chunk_size + i
        inside = (i < chunk_size) & (t < seq_len)
    index = (batch * num_heads + head) * num_chunks + chunk
    rows = (batch * seq_len + t) * num_heads + head
    e = tl.program_id(2) * VALUES + tl.arange(0, VALUES)
    acc = tl.zeros((TOKENS, VALUES), tl.float32)
    for start in range(0, head_dim, KEYS):
        d = start + tl.arange(0, KEYS)
        query_mask = inside[:, None] & (d < head_dim)[None, :]
        queries = tl.load(query_ptr + rows[:, None] * head_dim + d[None, :], mask=query_mask, other=0.0)
        state_mask = (d < head_dim)[:, None] & (e < value_dim)[None, :]
        state_rows = (index * head_dim + d)[:, None] * value_dim
        states = tl.load(states_ptr + state_rows + e[None, :], mask=state_mask, other=0.0)
        acc += tl.dot(queries.to(tl.float32), states, input_precision="ieee")
    decay = tl.exp(-tl.load(slopes_ptr + head) * (i + 1))
    place = out_ptr + rows[:, None] * value_dim + e[None, :]
    out_mask = inside[:, None] & (e < value_dim)[None, :]
    out = tl.load(place, mask=out_mask, other=0.0).to(tl.float32) + acc * decay[:, None]
    tl.store(place, out.to(out_ptr.dtype.element_ty), mask=out_mask)


def lightning_attn_none_diag(query, slopes, states, out, chunk_size):
    batch, seq_len, num_heads, head_dim = query.shape
    num_chunks, _, value_dim = states.shape[2:]
    flat = chunk_size % 32 == 0
    tokens = min(64, chunk_size) if flat else 32
    if flat:
        grid = (batch * num_heads * triton.cdiv(seq_len, tokens), 1, triton.cdiv(value_dim, 32))
    else:
        grid = (batch * num_heads * num_chunks, triton.cdiv(chunk_size, tokens), triton.cdiv(value_dim, 32))
    add_earlier_chunks[grid](
        query,
        slopes,
        states,
        out,
        seq_len,
        num_heads,
        head_dim,
        value_dim,
        chunk_size,
        num_chunks,
        FLAT=flat,
        TOKENS=tokens,
        KEYS=32,
        VALUES=32,
    )
