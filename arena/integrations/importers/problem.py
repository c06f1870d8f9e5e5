"""One foreign problem as Python text with sizes left open, and the reasons for which a problem is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

CASE_WORDS = frozenset({"kind", "note", "omit", "timed"})
_CPP = (
    "alignas alignof and asm auto bool break case catch char class const continue default delete do double else enum"
    " explicit export extern false float for friend goto if inline int long namespace new not operator or private"
    " protected public register return short signed sizeof static struct switch template this throw true try typedef"
    " typename union unsigned using virtual void volatile while xor stream workspace"
)
RESERVED = CASE_WORDS | frozenset(_CPP.split()) | {"min", "max", "abs", "cdiv", "sqrt", "log2", "next_power_of_2"}


class Reason(StrEnum):
    """Why a problem is no task."""

    FORMAT = "format"
    """the file does not have the parts that the format names"""
    PACKAGE = "package"
    """it imports a package that a judge does not have"""
    RUN = "does not run"
    """it fails on the meta device, or on the CPU"""
    INPUT = "input"
    """an input is computed from drawn values, or is no tensor of a supported dtype"""
    RANDOM = "random"
    """it draws random numbers while it computes, or keeps such numbers"""
    STATE = "state"
    """it changes its inputs, or keeps tensors that are neither parameters nor buffers"""
    OUTPUT = "output"
    """its result is no tensor, or not finite"""
    SIZES = "sizes"
    """no size can be changed, or sizes that depend on each other"""
    FORMULA = "formula"
    """a shape, or the work, is no formula of the sizes"""
    CASES = "cases"
    """too few cases: the domain is too small, or its least case too large for the CPU platform"""
    FLOAT64 = "float64"
    """the reference does not run in float64"""
    CHECK = "check"
    """`arena tasks check` fails"""


class Skipped(Exception):
    """A problem cannot be a task; `detail` is a sentence for the table."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, " ".join(detail.split())[:300]


class TooSlow(Skipped):
    """Runs on the meta device take more time than a problem has."""


@dataclass(frozen=True)
class Problem:
    """A foreign problem, ready to be run at any sizes.

    `text` is a Python module that defines `reference`; `probe` is further text that defines `_inputs(*sizes)`. The
    order of `sizes` is that of the parameters of both `_inputs` and `_model`.
    """

    name: str
    origin: str
    summary: str
    text: str
    probe: str
    sizes: Mapping[str, int]
    """base value of each size that may become an axis"""
    arguments: tuple[str, ...]
    """names of the inputs, in the order of `_inputs`; `reference` takes them by name, then weights and sizes"""
    weights: Mapping[str, str] = field(default_factory=dict)
    """argument names of the weights, by their names in the module; a weight that is no argument is 0"""
    zeros: tuple[str, ...] = ()
    """names in the module of weights that are 0"""
    docs: Mapping[str, str] = field(default_factory=dict)
    """what an axis means, where the format says it"""
    workloads: tuple[Mapping[str, int], ...] = ()
    """sizes that the format itself lists"""
    constraints: tuple[str, ...] = ()
    """conditions on the sizes that the format itself lists"""
    init: tuple[int | float | str | list[int | float | str], ...] | None = None
    """arguments of a module's constructor, in numbers and expressions of the sizes; None: it takes no modules"""
