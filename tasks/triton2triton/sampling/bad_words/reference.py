"""Banned sequences of tokens, compared with the end of each request's history."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Histories and banned sequences over few distinct tokens; about half of the sequences continue a history's end.

    Of those, one in three has its first token changed, so that only a whole comparison tells it from a match.
    """
    device, vocab, longest = generator.device, case["vocab_size"], case["max_word_len"]
    slots, words, room = case["num_slots"], case["max_bad_words"], case["max_len"]

    def integers(low: int, high: int, *shape: int) -> torch.Tensor:
        return torch.randint(low, high, (count, slots, *shape), generator=generator, device=device, dtype=torch.int32)

    history = integers(0, vocab, room)
    seq_lens = torch.where(integers(0, 16) == 0, integers(0, room + 1) % 2, integers(room // 2, room + 1))
    seq_lens = seq_lens.clamp(max=room)
    lengths, places = integers(1, longest + 1, words), torch.arange(longest, device=device)
    # The place of a prefix's token in the history; before its start, and for the last token of a word, any serves.
    source = (seq_lens[..., None, None] - lengths[..., None] + 1 + places).clamp(0, room - 1)
    ends = history.gather(2, source.flatten(2).long()).unflatten(2, (words, longest))
    likely = (integers(0, 2, words, 1) == 0) & (places < lengths[..., None] - 1)
    tokens = torch.where(likely, ends, integers(0, vocab, words, longest))
    changed = (integers(0, 3, words, 1) == 0) & (places == 0) & (lengths[..., None] > 1)
    tokens = torch.where(changed, (tokens + 1) % vocab, tokens)

    num_words = torch.where(integers(0, 8) == 0, 0, integers((words + 1) // 2, words + 1))
    lengths = torch.where(torch.arange(words, device=device) < num_words[..., None], lengths, 0)
    sums = lengths.cumsum(dim=-1)
    offsets = torch.cat([torch.zeros_like(sums[..., :1]), sums], dim=-1)
    target = torch.where(places < lengths[..., None], offsets[..., :-1, None] + places, words * longest)
    flat = integers(0, vocab, words * longest + 1)
    flat.scatter_(2, target.flatten(2), tokens.flatten(2))
    return {
        "bad_word_ids": flat[..., :-1],
        "offsets": offsets,
        "num_bad_words": num_words,
        "token_ids": history,
        "seq_lens": seq_lens,
    }


def reference(
    logits: torch.Tensor,
    bad_word_ids: torch.Tensor,
    offsets: torch.Tensor,
    num_bad_words: torch.Tensor,
    token_ids: torch.Tensor,
    seq_lens: torch.Tensor,
    idx_mapping: torch.Tensor,
    max_word_len: int,
) -> torch.Tensor:
    """logits: (num_reqs, vocab_size); bad_word_ids, offsets, token_ids: a row for each slot."""
    slots = idx_mapping.long()
    begins, ends = offsets[slots, :-1].long(), offsets[slots, 1:].long()
    lengths, history = seq_lens[slots].long()[:, None], token_ids[slots]
    flat = bad_word_ids[slots]
    given = torch.arange(begins.shape[1], device=logits.device) < num_bad_words[slots][:, None]
    matches = given & (ends - begins <= lengths + 1)
    for back in range(1, max_word_len):  # the token `back` places before a sequence's last
        banned = flat.gather(1, (ends - 1 - back).clamp(min=0))
        said = history.gather(1, (lengths - back).clamp(min=0).expand_as(ends))
        matches &= (back >= ends - begins) | (banned == said)
    last = flat.gather(1, (ends - 1).clamp(min=0)).long()
    rows = torch.arange(len(slots), device=logits.device)[:, None].expand_as(last)
    logits[rows[matches], last[matches]] = -torch.inf
    return logits
