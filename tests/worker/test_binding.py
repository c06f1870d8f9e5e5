"""Arguments of many sets: addresses are worked out for all of them at once."""

from __future__ import annotations

import pytest
import torch

from arena.platforms.cpu.platform import CpuPlatform
from arena.processes.protocol import Bind, TensorArgument
from arena.task.numerics.operations import count_operations
from arena.worker.binding import Binding

_ROWS, _ROW_BYTES, _PITCH = 5, 16, 256


def bound(sets: int) -> tuple[Binding, torch.Tensor]:
    """Rows, and the offsets of all of them in reverse, in `sets` sets; also the buffer as the judge sees it."""
    shared = CpuPlatform().allocate(2 * sets * _PITCH)
    offsets = torch.arange(_ROWS).flip(0) * _ROW_BYTES
    for k in range(sets):
        at = (sets + k) * _PITCH
        shared.tensor[at : at + 8 * _ROWS].view(torch.int64).copy_(offsets)
    message = Bind(
        shared.handle,
        sets,
        (
            TensorArgument("rows", "uint8", (_ROWS, _ROW_BYTES), (_ROW_BYTES, 1), 0, _PITCH),
            TensorArgument("addresses", "int64", (_ROWS,), (1,), sets * _PITCH, _PITCH, addresses_of="rows"),
        ),
        (),
        {},
    )
    return Binding(message, CpuPlatform(), shared.file), shared.tensor


@pytest.mark.parametrize("sets", [1, 7])
def test_every_address_lies_in_its_own_set(sets: int) -> None:
    binding, _ = bound(sets)
    binding.resolve_addresses()
    for k in range(sets):
        rows, addresses = binding.values[k]
        assert isinstance(rows, torch.Tensor) and isinstance(addresses, torch.Tensor)
        assert addresses.tolist() == [rows[row].data_ptr() for row in reversed(range(_ROWS))]


def test_a_thousand_sets_take_no_more_operations_than_two() -> None:
    """They are worked out before every pass: one by one that took a tenth of a second on an H200."""
    counts = []
    for sets in (2, 1000):
        binding, _ = bound(sets)
        counts.append(count_operations(binding.resolve_addresses))
    assert counts[0] == counts[1]
