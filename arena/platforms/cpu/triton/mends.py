"""What `install()` changes in Triton's interpreter, in words: one entry for each module of this package."""

from __future__ import annotations

from typing import NamedTuple

SUPPORTED = "3.6 and 3.9"
"""Versions of Triton whose interpreter these mends were tested with."""


class Mend(NamedTuple):
    """One change: the module that makes it, what was wrong without it, and in which versions it was seen."""

    module: str
    title: str
    without: str
    versions: str = SUPPORTED


MENDS = (
    Mend(
        "formats",
        "bfloat16 and fp8 live in arrays of their own type",
        "bfloat16 arithmetic worked on the bit patterns",
    ),
    Mend(
        "casting",
        "casts round to nearest even, fp8 saturates, float to integer saturates as on hardware",
        "fp32 to bfloat16 was cut off, some fp8 casts were off, NaN became INT_MIN",
    ),
    Mend(
        "arithmetic",
        "`fma` rounds once, `tl.minimum` drops NaN, `erf` is fast, bfloat16 constants exist, integer ones wrap",
        "bfloat16 `fma` multiplied bit patterns; before 3.9 `fma` rounded twice and NaN won in `tl.minimum`",
    ),
    Mend(
        "products",
        "`tl.dot` accumulates in fp32, `tl.dot_scaled` decodes every format",
        "bfloat16 `tl.dot` multiplied bit patterns; `tl.dot_scaled` did not exist before 3.9",
    ),
    Mend(
        "memory",
        "stores write exactly one element each, bfloat16 atomics add, histograms are int32",
        "bfloat16 atomics failed or added bit patterns; a wider value overwrote its neighbours",
    ),
    Mend(
        "reductions",
        "reductions and scans combine whole slices in a tree, in the element's own type",
        "a custom combine function ran once for each element",
    ),
    Mend("sorting", "`tl.sort`, `tl.topk` and `tl.flip` are numpy's", "sorting 1024 elements took 3 s a program"),
    Mend(
        "libdevice",
        "`libdevice` functions compute, also those of `tl.extra.cuda` and `tl.extra.hip`",
        "`libdevice` functions returned None or raised",
    ),
    Mend(
        "rewriting",
        "`range` counts in int32 tensors; `and`, `or`, `not` work on blocks",
        "`i.to(tl.int64)` failed in a loop, and `mask1 and mask2` on blocks gave mask2",
    ),
    Mend(
        "launching",
        "arguments are typed as by the compiler, an integer of 1 is a constant, grid functions see plain numbers",
        "a float took the tensor's type, `n.to(tl.int64)` worked for n = 1, imported names failed",
    ),
    Mend(
        "launch_order",
        "programs run in the order that each call asks for: ascending, descending or shuffled",
        "of two programs that write one element, the later one always won",
    ),
    Mend("gluon", "a Gluon kernel is refused by name", "it failed with `0 active drivers ([])`"),
    Mend(
        "tuning",
        "`@triton.autotune` runs every configuration that survives pruning once, and takes the first",
        "several configurations needed a GPU driver to be benchmarked",
    ),
)


def describe() -> str:
    """The mends as a Markdown table, for `docs/develop/emulation.md`."""
    lines = ["| mend | what was wrong without it |", "| --- | --- |"]
    lines += [f"| {mend.title} | {mend.without} |" for mend in MENDS]
    return "\n".join(lines)
