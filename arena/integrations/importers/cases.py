"""Cases of an imported problem: drawn for each kind, inside the domain, and run before they are written."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from arena.integrations.importers.domain import MOST_ELEMENTS, Domain, FoundAxis
from arena.integrations.importers.problem import Reason, Skipped
from arena.integrations.importers.program import ProblemProgram
from arena.task.expression import Expression
from arena.task.options import CPU_MAX_WORK

Sizes = dict[str, int]
_TRIES = 4000
_TYPICAL_WORK, _SPECIAL_WORK = (8e4, 2.5e5), (4e3, 8e4)
"""operations plus bytes of small cases; a definition is checked on the largest of these, so typical ones are larger"""
_MOST_TIMED_ELEMENTS = 1 << 27
_MOST_FLOPS = 3e11
_LONG_BYTES, _LONG_FLOPS = 1e8, 2e9
"""what keeps a GPU busy for 20 µs"""


@dataclass(frozen=True)
class DrawnCase:
    """One case: sizes, and for held-out cases the kind."""

    sizes: Mapping[str, int]
    kind: str = ""
    timed: bool = False
    note: str = ""


@dataclass
class CaseDrawer:
    """Draws the cases of one problem."""

    program: ProblemProgram
    domain: Domain
    seed: str
    seen: list[DrawnCase] = field(default_factory=list)
    heldout: list[DrawnCase] = field(default_factory=list)
    _keys: set[tuple[tuple[str, int], ...]] = field(default_factory=set)
    """sizes that a case has"""
    _bias: int = 1
    """how much small sizes are preferred; it grows while no case is small enough"""

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def draw(self) -> None:
        """Fill `seen` and `heldout`; raises `Skipped` where the domain has too few cases."""
        large = self._production()
        for _ in range(4):
            self.seen.append(self._small("", self._balanced))
        self.seen += [DrawnCase(sizes, timed=True, note=note) for sizes, note in large[:2]]
        self.heldout += [
            self._small("edge", self._edge),
            self._small("alignment", self._odd),
            self._small("asymmetric", self._asymmetric),
            self._small("scale_down", lambda: self._log_uniform(self._bias + 1)),
            self._small("alignment", self._odd),
        ]
        for sizes, note in large[2:]:
            self.heldout.append(DrawnCase(sizes, self._kind(sizes), timed=True, note=note))

    def _kind(self, sizes: Sizes) -> str:
        """The kind of a large case: larger than all seen ones, of odd sizes, or of production."""
        if any(sizes[a.name] > max(case.sizes[a.name] for case in self.seen) for a in self.domain.axes):
            return "scale_up"
        odd = all(sizes[axis.name] // axis.step % 2 for axis in self.domain.axes)
        return "alignment" if odd else "production"

    @property
    def is_short(self) -> bool:
        """Return whether a timed case may take less than 20 µs on a GPU."""
        timed = [self.program.trace(case.sizes) for case in (*self.seen, *self.heldout) if case.timed]
        return any(trace.held_bytes < _LONG_BYTES and trace.flops < _LONG_FLOPS for trace in timed)

    def _production(self) -> list[tuple[Sizes, str]]:
        """Five large sizes: the problem's own, scaled to what fits, and others near them."""
        own = [dict(self._full(workload)) for workload in self.program.problem.workloads]
        fitting = [sizes for sizes in own if self._is_valid(sizes, large=True)]
        base = {axis.name: axis.base for axis in self.domain.axes}
        scaled = self._scaled(base)
        found = [(scaled, "sizes of the problem" if scaled == base else "sizes of the problem, scaled to fit")]
        found += [(sizes, "a workload of the problem") for sizes in fitting if sizes != scaled]
        for sizes in self._near(scaled, found):
            if len(found) >= 5:
                break
            if all(sizes != other for other, _ in found) and self._is_valid(sizes, large=True):
                found.append((sizes, ""))
        if len(found) < 4:
            raise Skipped(Reason.CASES, f"only {len(found)} large cases found")
        for sizes, _ in found[:5]:
            self._taken(sizes)
        return found[:5]

    def _full(self, sizes: Mapping[str, int]) -> Iterator[tuple[str, int]]:
        return ((axis.name, sizes.get(axis.name, axis.base)) for axis in self.domain.axes)

    def _scaled(self, base: Sizes) -> Sizes:
        """Halve the largest axis until the case fits; double axes while it is too short to be timed."""
        sizes = dict(base)
        for _ in range(60):
            if self._is_valid(sizes, large=True):
                break
            axis = max(self.domain.axes, key=lambda a: sizes[a.name] // a.low)
            sizes[axis.name] = max(axis.low, sizes[axis.name] // 2 // axis.step * axis.step)
        for _ in range(20):
            trace = self.program.trace(sizes)
            if trace.held_bytes >= _LONG_BYTES or trace.flops >= _LONG_FLOPS:
                break
            room = [a for a in self.domain.axes if 2 * sizes[a.name] <= a.high]
            grown = [{**sizes, a.name: 2 * sizes[a.name]} for a in sorted(room, key=lambda a: sizes[a.name])]
            sizes = next((one for one in grown if self._is_valid(one, large=True)), sizes)
        return sizes

    def _near(self, sizes: Sizes, found: Sequence[tuple[Sizes, str]]) -> Iterator[Sizes]:
        """Two axes changed, first those that have one size in all that was found."""
        for _ in range(80):
            changed = dict(sizes)
            axes = self._random.sample(self.domain.axes, len(self.domain.axes))
            axes.sort(key=lambda axis: len({other[axis.name] for other, _ in found}) > 1)
            for axis in axes[:2]:
                factor = self._random.choice((0.5, 0.75, 1.25, 1.5, 2.0))
                moved = round(sizes[axis.name] * factor) - self._random.choice((0, 0, 1, 3)) * axis.step
                changed[axis.name] = min(max(axis.low, moved // axis.step * axis.step), axis.high)
            yield changed

    def _small(self, kind: str, propose: Callable[[], Sizes]) -> DrawnCase:
        """A fresh case that the CPU platform can run; of a good amount of work if one is found soon."""
        fallback: Sizes | None = None
        for attempt in range(_TRIES):
            self._bias = 1 + attempt % 12
            sizes = propose()
            if tuple(sorted(sizes.items())) in self._keys or self._operations(sizes) > CPU_MAX_WORK:
                continue
            if not self._is_valid(sizes, large=False):
                continue
            trace = self.program.trace(sizes)
            work = trace.flops + trace.held_bytes
            if work > CPU_MAX_WORK:
                continue
            least, most = _SPECIAL_WORK if kind else _TYPICAL_WORK
            good = least <= work <= most or (work <= most and kind in ("edge", "scale_down"))
            if good and self._is_right(sizes):
                self._taken(sizes)
                return DrawnCase(sizes, kind)
            fallback = fallback or (sizes if not good and self._is_right(sizes) else None)
            if fallback is not None and attempt > _TRIES // 10:
                break
        if fallback is None:
            why = f"no {kind or 'small'} case found of at most {CPU_MAX_WORK:.0e} operations and bytes"
            raise Skipped(Reason.CASES, why)
        self._taken(fallback)
        return DrawnCase(fallback, kind)

    def _operations(self, sizes: Sizes) -> float:
        """The operations by formula, which takes no run."""
        terms = self.domain.shapes.terms.items()
        return sum(factor * float(Expression(text or "1").value(sizes)) for text, factor in terms)

    def _taken(self, sizes: Sizes) -> None:
        self._keys.add(tuple(sorted(sizes.items())))

    def _log_uniform(self, bias: float) -> Sizes:
        return {axis.name: self._between(axis, bias) for axis in self.domain.axes}

    def _between(self, axis: FoundAxis, bias: float) -> int:
        return self._at(axis, self._random.random() ** (1 + bias / 4))

    def _at(self, axis: FoundAxis, share: float) -> int:
        """A size above the least one, at a share of the range on a logarithmic scale."""
        least = axis.low + axis.step
        size: float = least * (max(axis.base, least) / least) ** share
        return min(axis.high, max(least, round(size / axis.step) * axis.step))

    def _balanced(self) -> Sizes:
        """All axes at about the same share of their range."""
        share = self._random.random() ** (1 + self._bias / 6)
        return {a.name: self._at(a, min(1.0, share * self._random.uniform(0.8, 1.25))) for a in self.domain.axes}

    def _edge(self) -> Sizes:
        sizes = self._log_uniform(self._bias)
        chosen = self._random.sample(self.domain.axes, self._random.randint(1, len(self.domain.axes)))
        return {**sizes, **{axis.name: axis.low for axis in chosen}}

    def _odd(self) -> Sizes:
        """Sizes that no block divides: odd multiples of their steps."""
        sizes = self._log_uniform(self._bias)
        for axis in self.domain.axes:
            if sizes[axis.name] // axis.step % 2 == 0:
                sizes[axis.name] = min(axis.high, sizes[axis.name] + axis.step)
        return sizes

    def _asymmetric(self) -> Sizes:
        """One axis much larger than the others."""
        sizes = {axis.name: self._between(axis, 12) for axis in self.domain.axes}
        axis = self._random.choice(self.domain.axes)
        return {**sizes, axis.name: self._between(axis, 0)}

    def _is_valid(self, sizes: Sizes, *, large: bool) -> bool:
        """Return whether it is in the domain, runs, and is not too large to hold or to compute."""
        if not all(a.low <= sizes[a.name] <= a.high and sizes[a.name] % a.step == 0 for a in self.domain.axes):
            return False
        if not all(Expression(text).value(sizes) for text in self.program.problem.constraints):
            return False
        if not self.program.runs(sizes):
            return False
        trace = self.program.trace(sizes)
        if trace.skeleton() != self.domain.base.skeleton() and large:
            return False
        most = _MOST_TIMED_ELEMENTS if large else MOST_ELEMENTS
        return trace.largest <= most and trace.flops <= _MOST_FLOPS and trace.held_bytes <= 8 * most

    def _is_right(self, sizes: Sizes) -> bool:
        try:
            self.program.check_on_cpu(sizes)
        except Skipped as problem:
            if problem.reason in (Reason.OUTPUT, Reason.RUN):
                return False
            raise
        return True
