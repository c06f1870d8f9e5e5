"""The B side of LoRA (Hu et al., 2021) for a batch whose tokens have different adapters (Chen et al., Punica, 2023)."""

from typing import Any

import torch

from arena.semantics.chunks import gather_chunks
from arena.semantics.ragged import similar, spans


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """token_lora_ids: runs that take the adapters in turn, (runs + 5) // 8 of them none, in random order."""

    def shuffled(size: int) -> torch.Tensor:
        return torch.rand(count, size, generator=generator, device=generator.device).argsort(dim=-1)

    tokens, adapters = case["num_tokens"], case["num_loras"]
    runs = -(-tokens // case["run_length"])
    turns = torch.arange(runs, device=generator.device)
    ids = shuffled(adapters)[:, turns % adapters].masked_fill(turns >= runs - (runs + 5) // 8, -1)
    ids = ids.gather(1, shuffled(runs))
    return {"token_lora_ids": ids.repeat_interleave(case["run_length"], dim=-1)[:, :tokens]}


def reference(
    x: torch.Tensor,
    weight: torch.Tensor,
    token_lora_ids: torch.Tensor,
    slice_offsets: torch.Tensor,
    out: torch.Tensor,
) -> torch.Tensor:
    """x: (num_slices, num_tokens, rank); weight: (num_loras, out_features, rank); out: (num_tokens, out_features)."""
    out = out.clone()
    counts = (token_lora_ids == torch.arange(len(weight), device=out.device)[:, None]).sum(dim=1)
    order = token_lora_ids.argsort(stable=True)[len(token_lora_ids) - int(counts.sum()) :]
    begins = counts.cumsum(0) - counts
    used = counts.nonzero().flatten()
    width = weight.shape[1] * weight.shape[2]
    for group in similar(
        [(count,) for count in counts[used].tolist()], lambda count: width + 2 * count * weight.shape[1]
    ):
        adapters = used[group]
        steps = torch.arange(int(counts[adapters].max()), device=out.device)
        present = steps < counts[adapters, None]
        tokens = torch.where(present, order[(begins[adapters, None] + steps).clamp(max=len(order) - 1)], -1)
        for values, (begin, end) in zip(x, spans(slice_offsets), strict=True):
            added = torch.einsum("atr,aor->ato", gather_chunks(values, tokens), weight[adapters, begin:end])
            out[tokens[present], begin:end] += added[present]
    return out
