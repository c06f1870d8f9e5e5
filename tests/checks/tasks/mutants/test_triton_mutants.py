"""Faults in Triton sources."""

from __future__ import annotations

import ast

import pytest

from arena.checks.tasks.mutants.base import Fault
from arena.checks.tasks.mutants.triton import derive

KERNEL = '''\
"""Not here: 1.5 < 2."""
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr = 128):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=0.0)
        total += tl.where(x > 0, x, 0.5)
    tl.store(y_ptr + i[:, None], total.to(tl.float16), mask=i < n)


def entry(x, y, größe):
    kernel[(größe, 1)](x, y, größe)
'''


def changes(fault: Fault) -> list[str]:
    return [f"{mutant.line}: {mutant.change}" for mutant in derive(KERNEL) if mutant.fault is fault]


@pytest.mark.parametrize(
    ("fault", "wanted"),
    [
        (Fault.BOUND, ["11: i < n → i <= n", "12: x > 0 → x >= 0", "13: i < n → i <= n"]),
        (Fault.CONSTANT, ["12: 0.5 → 0.875"]),
        (Fault.LAST, ["9: n → n - BLOCK", "9: 0 → 0 + BLOCK", "17: größe → größe - 1"]),
        (Fault.EVERY_OTHER, ["9: BLOCK → 2 * (BLOCK)"]),
        (Fault.PRECISION, ["13: total → total.to(tl.bfloat16)"]),
        (Fault.SWAP, ["9: n, BLOCK → BLOCK, n", "17: x, y → y, x", "17: y, größe → größe, y"]),
        (
            Fault.MASK,
            [
                "11: tl.load(x_ptr + i, mask=i < n, other=0.0) → tl.load(x_ptr + i)",
                "12: tl.where(x > 0, x, 0.5) → (x)",
                "13: tl.store(y_ptr + i[:, None], total.to(tl.float16), mask=i < n) → "
                "tl.store(y_ptr + i[:, None], total.to(tl.float16))",
            ],
        ),
    ],
)
def test_each_fault_is_found(fault: Fault, wanted: list[str]) -> None:
    assert sorted(changes(fault)) == sorted(wanted)


def test_terms() -> None:
    found = changes(Fault.TERM)
    assert "12: total += tl.where(x > 0, x, 0.5) → total = tl.where(x > 0, x, 0.5)" in found
    assert "11: x_ptr + i → x_ptr - (i)" in found


def test_mutants_that_begin_at_the_same_character_have_names_of_their_own() -> None:
    text = KERNEL.replace("range(0, n, BLOCK)", "range(n + BLOCK * n - n, n, BLOCK)")
    names = [mutant.name for mutant in derive(text)]
    assert len(set(names)) == len(names) and any(name.endswith("term 2") for name in names), names


def test_every_mutant_is_python() -> None:
    assert len([ast.parse(mutant.text) for mutant in derive(KERNEL)]) > 15


def test_a_maximum_becomes_zero_and_the_start_of_a_loop_stays() -> None:
    text = "@triton.jit\ndef kernel(x, y):\n    first = tl.maximum(x - 8, 0)\n    y = tl.maximum(y, tl.max(x))\n"
    found = [mutant.change for mutant in derive(text) if mutant.fault is Fault.MAXIMUM]
    assert found == [
        "tl.maximum(y, tl.max(x)) → tl.minimum(tl.maximum(tl.maximum(y, tl.max(x)), 0), 0)",
        "tl.max(x) → tl.minimum(tl.maximum(tl.max(x), 0), 0)",
    ]


def test_a_loop_that_seeks_a_maximum_is_not_shortened() -> None:
    """Most of a row gives one that serves as well."""
    text = "@triton.jit\ndef kernel(n):\n    for i in range(0, n, 8):\n        peak = tl.maximum(peak, tl.load(i))\n"
    assert [mutant for mutant in derive(text) if mutant.fault is Fault.EVERY_OTHER] == []
