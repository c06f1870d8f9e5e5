"""Define mutants, and choose which of many are tried."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import zip_longest


class Fault(StrEnum):
    """The fault that was put into the kernel."""

    MASK = "mask"
    """a condition always holds, or a guard never does"""
    BOUND = "bound"
    """a comparison is off by one"""
    TERM = "term"
    """a term is dropped or has the wrong sign"""
    CONSTANT = "constant"
    """a number is another"""
    PRECISION = "precision"
    """a value is rounded to bfloat16 on its way"""
    LAST = "last"
    """the last block, or the last turn of a loop, is left out"""
    SWAP = "swap"
    """two arguments have changed places"""
    MAXIMUM = "maximum"
    """a maximum is 0: exponentials are not shifted, and a scale is lost"""
    EVERY_OTHER = "every-other"
    """a loop takes every second turn"""


@dataclass(frozen=True)
class SourceChange:
    """Characters `start` to `end` of a text replaced."""

    fault: Fault
    start: int
    end: int
    new: str


@dataclass(frozen=True)
class Mutant:
    """A source with one fault. `name` is `line:column fault`, by which a task declares it equivalent.

    Of several that begin at the same character, the second is `line:column fault 2`.
    """

    name: str
    fault: Fault
    line: int
    change: str
    text: str


def mutants(text: str, edits: Iterable[SourceChange]) -> list[Mutant]:
    """The mutants that a list of edits makes of a text, those that change nothing or repeat another left out."""
    made: dict[str, Mutant] = {}
    alike: Counter[str] = Counter()
    for edit in edits:
        changed = text[: edit.start] + edit.new + text[edit.end :]
        if changed != text and changed not in made:
            mutant = _mutant(text, edit, changed)
            alike[mutant.name] += 1
            count = alike[mutant.name]
            made[changed] = mutant if count == 1 else replace(mutant, name=f"{mutant.name} {count}")
    return list(made.values())


def choose(found: Sequence[Mutant], most: int) -> list[Mutant]:
    """At most so many, every kind of fault in turn and spread over the file; the same ones each time."""
    by_fault: dict[Fault, list[Mutant]] = defaultdict(list)
    for mutant in found:
        by_fault[mutant.fault].append(mutant)
    rounds = zip_longest(*(_spread(group) for group in by_fault.values()))
    chosen = [mutant for turn in rounds for mutant in turn if mutant is not None]
    return sorted(chosen[:most], key=lambda mutant: (mutant.line, mutant.name))


def _spread(group: list[Mutant]) -> list[Mutant]:
    """First, last, middle …: a prefix of the result is spread over the group."""
    if len(group) <= 2:
        return group
    middle = len(group) // 2
    left, right = _spread(group[1:middle]), _spread(group[middle + 1 : -1])
    between = [mutant for pair in zip_longest(left, right) for mutant in pair if mutant is not None]
    return [group[0], group[-1], group[middle], *between]


def _mutant(text: str, edit: SourceChange, changed: str) -> Mutant:
    line = text.count("\n", 0, edit.start) + 1
    column = edit.start - (text.rfind("\n", 0, edit.start) + 1) + 1
    before, after = (" ".join(part.split()) for part in (text[edit.start : edit.end], edit.new))
    change = f"{before or 'nothing'} → {after or 'nothing'}"
    return Mutant(f"{line}:{column} {edit.fault}", edit.fault, line, change, changed)
