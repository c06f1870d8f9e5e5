"""What an evaluation leaves behind. Impossible results cannot be built: no timing without correctness."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import geometric_mean

from arena.results.bounds import Attempt, Calls, Kind, Name, NotNegative, Number, Positive, Seconds, TaskId
from arena.results.effort import Effort
from arena.results.environment import Environment
from arena.results.portability import TargetBuild
from arena.results.profile import Profile
from arena.results.release import Corpus
from arena.results.session import Limits, Session
from arena.results.verdict import Stage, Status, Verdict

SCHEMA_VERSION = 1
VAGUE = 1.5
"""upper over lower bound of a speedup, from which noise would raise a score if the estimate counted"""
LONG_MS = 0.02
"""what a timed case takes at least: below it the resolution of clocks counts, a constant tenth of a microsecond"""

_MOST_TRIALS = 1_000_000
"""of one run"""
_TIMED = (Status.PASSED, Status.TIMING_MISMATCH, Status.IMPLAUSIBLE)


class Split(StrEnum):
    """Whether the agent could see a case."""

    SEEN = "seen"
    HELDOUT = "heldout"


class Mode(StrEnum):
    """How the calls of one pass were issued."""

    GRAPH = "graph"
    STREAM = "stream"
    LOOP = "loop"


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % confidence interval, in the unit of the field that holds it."""

    value: Number
    low: Number
    high: Number

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"interval [{self.low}, {self.high}] does not hold its estimate {self.value}")

    @property
    def half_width(self) -> float:
        """Half the width of the interval, relative to the value."""
        return (self.high - self.low) / 2 / self.value if self.value else float("inf")


@dataclass(frozen=True)
class Round:
    """One round of interleaved passes: seconds on the judge's clock, and on the host's own for the long pass."""

    baseline_short_s: Seconds
    candidate_short_s: Seconds
    baseline_long_s: Seconds
    candidate_long_s: Seconds
    candidate_host_s: Number = 0.0
    baseline_single_s: Seconds = 0.0
    candidate_single_s: Seconds = 0.0
    swapped: bool = False
    """whether the two sides had changed buffers: two places in memory are not equally fast"""


@dataclass(frozen=True)
class CaseTiming:
    """Latencies of baseline and candidate on one case, with the raw rounds they were computed from."""

    baseline_ms: Estimate
    candidate_ms: Estimate
    speedup: Estimate
    mode: Mode
    calls_short: Calls
    calls_long: Calls
    cache: str
    rounds: tuple[Round, ...]
    roofline_ms: Positive | None = None
    noisy: bool = False
    other_baselines_ms: dict[str, Number] = field(default_factory=dict)
    alone_ms: Estimate | None = None
    """the baseline before there was a candidate, where it lies in the rounds that are not swapped"""
    doubted: str = ""
    """why an earlier measurement of the case was not believed; this one was made after it, and alone counts"""
    undecided: str = ""
    """what a plausibility check saw that noise may explain; such a timing is noisy"""

    def __post_init__(self) -> None:
        if self.speedup.value <= 0 or self.speedup.low < 0:
            raise ValueError(f"speedup: {self.speedup.value} [{self.speedup.low}, …] is no quotient of times")

    @property
    def credit(self) -> Estimate:
        """The speedup that scores and rewards count.

        Of a noisy timing it is the lower bound where that is above 1, else the estimate, at most 1. An estimate says
        nothing where its interval is `VAGUE`: then the lower bound counts, at most 1. A timing that a plausibility
        check left undecided counts at most 1, however fast it looks.
        """
        if not self.noisy:
            return self.speedup
        low, high = self.speedup.low, self.speedup.high
        vague = low <= 0 or high / low > VAGUE
        value = low if low > 1 or vague else min(1.0, self.speedup.value)
        value = min(1.0, value) if self.undecided else value
        return Estimate(value, min(value, low), high)

    @property
    def roofline_fraction(self) -> float | None:
        """Least possible time over measured time; None for unknown peaks, and a latency lost in noise."""
        if self.roofline_ms is None or self.candidate_ms.value <= 0:
            return None
        return self.roofline_ms / self.candidate_ms.value


@dataclass(frozen=True)
class CaseResult:
    """How baseline and candidate did on one case."""

    case: Name
    split: Split
    kind: Kind
    label: str
    baseline: Status
    candidate: Status
    detail: str = ""
    error_ratio: float | None = None
    timing: CaseTiming | None = None
    calls: NotNegative = 0
    """of this size in recorded traffic, and `gpu_share` the per cent of the GPU's time that such calls took there"""
    gpu_share: NotNegative = 0
    regime: Kind = ""
    """the name of the regime that its values are of, its id's last part; empty: the usual values"""

    def __post_init__(self) -> None:
        if self.timing is not None and self.candidate not in _TIMED:
            raise ValueError(f"case {self.case}: a timing needs a correct candidate, not {self.candidate}")

    @property
    def speedup(self) -> Estimate | None:
        """The speedup that counts: None unless the candidate passed every check of this case."""
        return self.timing.speedup if self.timing and self.candidate is Status.PASSED else None

    @property
    def sizes(self) -> str:
        """Return the id of the case that has the usual values in tensors of the same sizes; its own unless a regime."""
        return self.case.removesuffix(f".{self.regime}") if self.regime else self.case

    @property
    def recorded(self) -> bool:
        """Return whether calls of this size are known from recorded traffic."""
        return bool(self.calls or self.gpu_share)

    @property
    def served_time(self) -> float:
        """Return the time that such calls of recorded traffic take with the baseline, in a unit of the task's own."""
        return self.gpu_share or (self.calls * self.timing.baseline_ms.value if self.timing else 0.0)

    @property
    def credit(self) -> Estimate | None:
        """What scores and rewards count of the speedup; None where it does not count."""
        return self.timing.credit if self.timing and self.candidate is Status.PASSED else None


def counted(cases: Iterable[CaseResult]) -> tuple[CaseResult, ...]:
    """Return the results whose speedups count: for each with a credit that has the usual values one.

    That is the slowest of its regimes where its interval lies below that of the usual values. A noisy timing's interval
    is wide: of such a regime what it is credited with, its lower bound, is compared in place of the upper one.
    """
    known = list(cases)
    usual = [result for result in known if not result.regime and result.credit is not None]
    regimes = [result for result in known if result.regime]
    return tuple(_slowest(result, [one for one in regimes if one.sizes == result.case]) for result in usual)


def _slowest(usual: CaseResult, regimes: Iterable[CaseResult]) -> CaseResult:
    slower = [
        (one.credit.value, one)
        for one in regimes
        if one.timing and one.credit and usual.credit
        if (one.credit.value if one.timing.noisy else one.credit.high) < usual.credit.low
    ]
    return min(slower, key=lambda pair: pair[0], default=(0.0, usual))[1]


@dataclass(frozen=True)
class Evaluation:
    """What the judge says of one candidate. `targets`: the GPUs it was built for beside the one it ran on; no gate.

    `profile`: only where it was asked for; feedback, no part of any verdict.
    """

    task: str
    task_type: str
    task_hash: str
    candidate_hash: str
    environment: Environment
    verdicts: tuple[Verdict, ...]
    cases: tuple[CaseResult, ...]
    compile_log: str = ""
    seconds: dict[str, Seconds] = field(default_factory=dict)
    targets: tuple[TargetBuild, ...] = ()
    profile: Profile | None = None
    effort: Effort = Effort.FULL
    unchanged: bool = False
    """whether the candidate is the task's baseline kernel, but for comments and white space"""
    dumped: str = ""
    """the case of which a call was written to the folder that `dump` names"""
    made_up: str = ""
    """what an author changed in a seen case; the only case here is then none of the task's, and there is no verdict"""

    @property
    def status(self) -> Status:
        """That of the gate that failed, or `passed`."""
        if self.failure is not None:
            return self.failure.status
        return Status.PASSED if self.verdicts else Status.NOT_RUN

    @property
    def failure(self) -> Verdict | None:
        """The gate that failed; held-out failures are results, not gates, and do not count here."""
        return next((one for one in self.verdicts if one.stage is not Stage.HELDOUT and not one.passed), None)

    @property
    def seen_speedup(self) -> float | None:
        """Geometric mean over the timed seen cases, 1 where none could be timed; None unless every gate was passed.

        None also where nothing was to be timed, and for a case that an author made up.
        """
        if self.status is not Status.PASSED or self.effort is Effort.CORRECTNESS or self.made_up:
            return None
        mean = self.mean_speedup(Split.SEEN)
        return 1.0 if mean is None else mean

    def mean_speedup(self, split: Split) -> float | None:
        """Geometric mean over the cases of one split that passed and were timed, whatever the gates say.

        A noisy timing counts as `CaseTiming.credit` says, and of several regimes one as `counted` says.
        """
        values = [result.credit.value for result in counted(self.split(split)) if result.credit is not None]
        return geometric_mean(values) if values else None

    def split(self, split: Split) -> tuple[CaseResult, ...]:
        """The cases of one split, in order."""
        return tuple(result for result in self.cases if result.split is split)


@dataclass(frozen=True)
class Trial:
    """One agent, one task, one attempt: the content of one record file.

    `evaluation` is None where nothing was handed in or the harness failed before a verdict; `session` is None for
    agents that only copy a file.
    """

    run: Name
    task: TaskId
    task_type: str
    task_hash: str
    agent: Name
    attempt: Attempt
    status: Status
    environment: Environment
    started_at: str
    seconds: Seconds
    detail: str = ""
    evaluation: Evaluation | None = None
    session: Session | None = None
    used: AgentUsed | None = None
    """the agent as it was for this trial; None in records of versions that did not store it"""
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        if self.evaluation is not None and self.evaluation.status is not self.status:
            raise ValueError(f"trial says {self.status}, its evaluation {self.evaluation.status}")

    @property
    def key(self) -> tuple[str, str, int]:
        """What identifies a trial within its run."""
        return self.agent, self.task, self.attempt


@dataclass(frozen=True)
class AgentUsed:
    """An agent as a run began with it.

    Attributes:
        program: a digest of its program, its definition and its model; empty for what hands in files.
        limits: what one trial may use up; None for what hands in files.
        calibrates: whether it hands in files of the corpus, to calibrate, and has no rank.
    """

    program: str = ""
    limits: Limits | None = None
    calibrates: bool = False


@dataclass(frozen=True)
class DeviceTasks:
    """The tasks of a run that are measured on one device."""

    environment: Environment
    tasks: tuple[TaskId, ...]


@dataclass(frozen=True)
class RunInfo:
    """The head of a run folder: what was asked for, so that a report knows its denominator.

    `config` is the configuration's path as it was typed, `config_text` what the file said.
    """

    run: Name
    started_at: str
    environment: Environment
    agents: tuple[Name, ...]
    tasks: tuple[TaskId, ...]
    attempts: Attempt
    config: str
    arena_version: str
    config_text: str = ""
    evaluation: dict[str, object] = field(default_factory=dict)
    """the evaluation options; empty in heads of versions that did not store them"""
    latency_bound: tuple[str, ...] = ()
    """the tasks of the run that no size makes long: their speeds are never averaged with others"""
    families: dict[str, str] = field(default_factory=dict)
    """the family of every task of the run; empty in heads of versions that did not store them"""
    selected: tuple[tuple[Name, TaskId, Attempt], ...] = ()
    """the only trials of the run, where it is a selection; empty: every agent on every task, every attempt"""
    corpus: Corpus | None = None
    """the release of the tasks; None in heads of versions that did not store it"""
    open_ended: bool = False
    """whether trials come as clients of `arena serve` finish them, so that none is planned"""
    devices: tuple[DeviceTasks, ...] = ()
    """of a run on several devices: the tasks of each; empty: all are measured in `environment`"""
    used: dict[str, AgentUsed] = field(default_factory=dict)
    """the agents as the run began with them, by name; empty in heads of versions that did not store them"""
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        if not self.selected and len(self.agents) * len(self.tasks) * self.attempts > _MOST_TRIALS:
            raise ValueError(f"agents, tasks, attempts: more than {_MOST_TRIALS} trials")
        if len(set(self.planned)) != len(self.planned):
            raise ValueError("agents, tasks, selected: a trial is planned twice")
        if self.evaluation.get("effort", Effort.FULL) not in list(Effort):
            raise ValueError(f"evaluation.effort: expected one of {', '.join(Effort)}")

    @property
    def effort(self) -> Effort:
        """How much every trial's evaluation times; heads of versions without the option are of `full` evaluations."""
        return Effort(str(self.evaluation.get("effort", Effort.FULL)))

    @property
    def planned(self) -> tuple[tuple[str, str, int], ...]:
        """Every trial of the run as (agent, task, attempt), in the order in which they are started."""
        return self.selected or tuple(
            (agent, task, attempt)
            for attempt in range(1, self.attempts + 1)
            for task in self.tasks
            for agent in self.agents
        )

    def environment_of(self, task: str) -> Environment:
        """Return where a task of the run is measured."""
        return next((device.environment for device in self.devices if task in device.tasks), self.environment)
