"""The device as a measuring bench: cache eviction, the cost of an empty call, and how long passes should be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from arena.judge.correctness.buffers import lay_out
from arena.judge.performance.plausibility import PlausibilityLimits
from arena.judge.performance.timed_program import PassPlan, TimedProgram
from arena.platforms.base import Platform, SharedBuffer
from arena.results.environment import DeviceFacts
from arena.task.definition import Arguments

if TYPE_CHECKING:
    import torch

_CACHE_MULTIPLE = 2
_EMPTY_CALLS = 200
_SCREEN_HALF_WIDTH = 0.05
_SCREEN_PASS = 0.8


@dataclass(frozen=True)
class TimingConfig:
    """Settings for a kind of device. Times in seconds unless named otherwise, sizes in bytes, widths relative."""

    pass_s: float
    """how long the calls of a long pass should take together; each has a set of its own, which is drawn and checked"""
    most_calls: int
    most_bytes: int
    isolated_rounds: int
    """the least rounds in which a baseline is measured alone: a figure to plan with, and to hold it against later"""
    wanted_half_width: float
    """the half width of a speedup's interval at which sampling ends, however much of its budget is left"""
    noisy_half_width: float
    """that above which sampling goes on beyond its budget, and a speedup is reported as noisy in the end"""
    reach_error_s: float
    """by how much more reaching a worker takes in a long pass than in a short one: standard deviation over workers"""
    latency_error: float
    """by which part of its latency a kernel differs from one worker to another: standard deviation"""
    clock_slack_ms: float
    baseline_drift: float

    def screening(self) -> TimingConfig:
        """The same with shorter passes and wider intervals, for `Effort.SCREEN`; the first rounds are as many."""
        return replace(
            self,
            pass_s=self.pass_s * _SCREEN_PASS,
            wanted_half_width=max(self.wanted_half_width, _SCREEN_HALF_WIDTH),
            noisy_half_width=max(self.noisy_half_width, _SCREEN_HALF_WIDTH),
        )


_GPU = TimingConfig(
    pass_s=2.5e-3,
    most_calls=1024,
    most_bytes=16 << 30,
    isolated_rounds=4,
    wanted_half_width=0.01,
    noisy_half_width=0.02,
    reach_error_s=3e-6,
    latency_error=0.0,
    clock_slack_ms=0.03,
    baseline_drift=0.10,
)
_CPU = TimingConfig(
    pass_s=0.0,
    most_calls=1,
    most_bytes=1 << 30,
    isolated_rounds=4,
    wanted_half_width=0.1,
    noisy_half_width=0.3,
    reach_error_s=8e-6,
    latency_error=0.03,
    clock_slack_ms=0.5,
    baseline_drift=1.5,
)


def _whole_pages(num_bytes: int) -> int:
    """Return a whole number of pages, however odd a size is: a buffer is seen as items of every size."""
    return num_bytes // _PAGE * _PAGE


def config_of(facts: DeviceFacts) -> TimingConfig:
    """Return the settings for a device."""
    return _CPU if facts.emulated else _GPU


_LEAST_CALLS = 8  # where the time depends on the data, a pass over few sets depends on which
_LONGEST_PASS_S = 20e-3
_SLOW_PASS_S = 100e-3  # of a candidate: by how much it is slower than this tells, nobody needs to know exactly
_SLOWEST_PASS_S = 500e-3  # of one, for as many calls as the shortest pass usually has
_BASELINE_PASS_S = 1.0  # beside a candidate that is much faster
_MEMORY_SHARE, _LARGEST_SHARE = 8, 4
_FEWEST_SETS = 5  # of a short pass, a long one and a single call
_PAGE = 2 << 20
_SHORT_SHARE = 8


@dataclass(frozen=True)
class Placement:
    """The buffers in which the sets of baseline and candidate lie; None: one of their own."""

    baseline: SharedBuffer | None
    candidate: SharedBuffer | None
    swapped: bool = False


class Timer:
    """The performance stage's knowledge of its device."""

    def __init__(self, platform: Platform, facts: DeviceFacts) -> None:
        self.platform, self.facts = platform, facts
        self.timing_config = config_of(facts)
        self._arena_bytes = _whole_pages(min(self.timing_config.most_bytes, facts.memory_bytes // _MEMORY_SHARE))

    def calibrate(self) -> None:
        """Measure what bounds a timing while no candidate exists that could disturb it."""
        _ = self._empty_call_ms

    def plan(
        self, arguments: Arguments, call_s: float, timing_config: TimingConfig, candidate_s: float | None = None
    ) -> PassPlan:
        """Pass lengths for calls of about `call_s` seconds, within the memory that sets may take.

        On the CPU a pass is one call, of which nothing is subtracted: calls take milliseconds, and a message a tenth of
        one. `timing_config`: the timer's own, or that of a screen. `candidate_s`: the same of the candidate, if known:
        the faster of both fills a pass, unless the other would need far longer for it.
        """
        if not self.platform.graphs:
            return PassPlan(0, 1)
        one_bytes, two_bytes = (lay_out(arguments, count)[1] for count in (1, 2))
        set_bytes = two_bytes - one_bytes
        room_bytes = max(0, self._arena_bytes - (one_bytes - set_bytes))
        fit = room_bytes // max(set_bytes, 1) * _SHORT_SHARE // (_SHORT_SHARE + 1) - 2
        candidate_s = candidate_s or call_s
        faster_s = min(call_s, candidate_s)
        wanted = int(timing_config.pass_s / faster_s)
        least = min(_LEAST_CALLS, max(3, int(_LONGEST_PASS_S / faster_s)))
        slow = max(int(_SLOW_PASS_S / candidate_s), min(_LEAST_CALLS, int(_SLOWEST_PASS_S / candidate_s)))
        long = max(3, min(max(wanted, least), fit, timing_config.most_calls, slow, int(_BASELINE_PASS_S / call_s)))
        return PassPlan(max(1, long // _SHORT_SHARE), long)

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Return where to put baseline and candidate; each placement gets half of the rounds.

        Two buffers are not equally fast (seen on an H200: 2 % for small sets, up to 1.5 times for large ones), so the
        sides change places. On the CPU there is one placement.
        """
        first, second = self.arenas
        straight = Placement(first, second)
        return (straight,) if first is None else (straight, Placement(second, first, swapped=True))

    @cached_property
    def arenas(self) -> tuple[SharedBuffer | None, SharedBuffer | None]:
        """Two buffers kept for the judge's life: a baseline lies where it lay when it was measured alone."""
        if not self.platform.graphs:
            return None, None
        first, second = (self.platform.allocate(self._arena_bytes, lasting=True) for _ in range(2))
        return first, second

    def make_room(self, cases: Iterable[Arguments]) -> None:
        """Have both arenas hold the fewest sets of each of these cases, up to a quarter of the memory each.

        Larger ones replace them for the rest of the judge's life. Sets that fit into none lie in buffers beside them,
        for which some devices have no memory then.
        """
        wanted = _whole_pages(max((lay_out(each, _FEWEST_SETS)[1] + _PAGE for each in cases), default=0))
        if self.platform.graphs and self._arena_bytes < wanted <= self.facts.memory_bytes // _LARGEST_SHARE:
            for arena in self.__dict__.pop("arenas", ()):
                arena.close()
            self._arena_bytes = wanted

    def run(self, side: TimedProgram, name: str) -> tuple[float, float]:
        """Run a pass with a cold cache on an idle device: what `TimedProgram.run` returns."""
        if self._scratch is not None:  # more than the last-level cache holds: it is full of something else then
            self._scratch.add_(1)
        self.platform.synchronize()
        return side.run(name)

    def cache_state(self, arguments: Arguments, plan: PassPlan) -> str:
        """Return how the cache was made cold: by the sheer size of the sets, or by eviction alone."""
        if self._scratch is None:
            return "not controlled"
        bytes_long = plan.long * arguments.num_bytes
        return "distinct sets" if bytes_long > _CACHE_MULTIPLE * self.facts.last_level_cache_bytes else "evicted"

    def limits(self, arguments: Arguments) -> PlausibilityLimits:
        """Bounds on a believable timing of this case."""
        facts = self.facts
        return PlausibilityLimits(
            roofline_ms=facts.roofline_ms(arguments.flops, arguments.num_bytes, arguments.number_format),
            empty_call_ms=self._empty_call_ms,
            clock_slack_ms=self.timing_config.clock_slack_ms,
            baseline_drift=self.timing_config.baseline_drift,
            workers_clock=not facts.emulated,
        )

    @cached_property
    def _scratch(self) -> torch.Tensor | None:
        import torch

        num_bytes = _CACHE_MULTIPLE * self.facts.last_level_cache_bytes
        if not num_bytes or not self.platform.graphs:
            return None
        return torch.zeros(num_bytes // 4, dtype=torch.int32, device=self.platform.torch_device)

    @cached_property
    def _empty_call_ms(self) -> float:
        """Return the ms of one graph node that does next to nothing; 0 on the CPU."""
        import torch

        if not self.platform.graphs:
            return 0.0
        cell = torch.zeros(1, device=self.platform.torch_device)
        cell.add_(1)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(_EMPTY_CALLS):
                cell.add_(1)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        times = []
        for _ in range(5):
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        return float(min(times)) / _EMPTY_CALLS
