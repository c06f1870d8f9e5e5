"""Reads outside of the arguments on the CPU platform: how many elements, of which size, and near which argument."""

from __future__ import annotations

import numpy as np
import pytest

from arena.platforms.cpu.triton.fence import Fence

FENCE = Fence.around(1000, 1000, [(1100, 1140, "x"), (1500, 1540, "y")])


def read(*addresses: int) -> None:
    found = np.array(addresses, np.uint64)
    FENCE.check(found, np.ones(found.shape, bool), 4)


@pytest.mark.parametrize(
    ("addresses", "said"),
    [
        ((1136, 1140, 1144), "2 elements of 4 bytes were read outside of every argument, the first 1 after the last"),
        (
            (1148,),
            "1 elements of 4 bytes were read outside of every argument, the first 3 after the last element of `x`",
        ),
        ((1096,), "the first 1 before the first element of `x`"),
        ((1492,), "the first 2 before the first element of `y`"),
        ((1600,), "the first 16 after the last element of `y`"),
    ],
)
def test_the_message_counts_elements_and_names_the_argument(addresses: tuple[int, ...], said: str) -> None:
    with pytest.raises(IndexError) as problem:
        read(*addresses)
    assert said in str(problem.value) and str(problem.value).endswith("; mask what a load may read")


def test_reads_of_arguments_and_of_other_memory_are_let_be() -> None:
    read(1100, 1136, 1500, 1536, 5000, 10)
