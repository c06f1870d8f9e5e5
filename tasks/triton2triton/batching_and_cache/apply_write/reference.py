"""Staged writes of slices of rows."""

from typing import Any

import torch

from arena.semantics.ragged import owners


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """cu_lens: offsets of lengths that are evenly spread over max_length … 0, in random order."""
    writes, longest = case["num_writes"], case["max_length"]
    lengths = longest - torch.arange(writes, device=generator.device) * longest // max(1, writes - 1)
    order = torch.rand(count, writes, generator=generator, device=generator.device).argsort(dim=-1)
    return {"cu_lens": torch.nn.functional.pad(lengths[order].cumsum(dim=-1), (1, 0)).int()}


def reference(
    contents: torch.Tensor, rows: torch.Tensor, starts: torch.Tensor, cu_lens: torch.Tensor, state: torch.Tensor
) -> torch.Tensor:
    """contents: (num_writes * max_length,); rows, starts: (num_writes,); state: (num_rows, row_length)."""
    writes = owners(cu_lens)
    places = torch.arange(len(writes), device=state.device)
    columns = starts.long()[writes] + places - cu_lens[writes]
    state[rows.long()[writes], columns] = contents[places]
    return state
