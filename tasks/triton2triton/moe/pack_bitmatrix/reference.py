"""Sets of experts as bit masks, by way of a matrix of booleans."""

import torch


def reference(topk_ids: torch.Tensor, num_experts: int) -> torch.Tensor:
    """topk_ids: (num_tokens, top_k); words: (num_tokens, ceil(num_experts / 32))."""
    columns = -(-num_experts // 32) * 32
    # One column more, at the end, takes the ids that choose nothing.
    ids = topk_ids.long()
    chosen = torch.zeros(ids.shape[0], columns + 1, dtype=torch.bool, device=ids.device)
    chosen.scatter_(1, torch.where(ids < 0, columns, ids), True)
    by_word = chosen[:, :columns].unflatten(1, (-1, 32))
    words = torch.zeros_like(by_word[..., 0], dtype=torch.int64)
    for bit in range(32):
        words |= by_word[..., bit].long() << bit
    return words.int()
