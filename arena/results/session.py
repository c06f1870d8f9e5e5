"""What an agent did during a trial: events in one common form, what it used up, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from arena.results.bounds import Count, NotNegative, Number, Positive, Seconds, Whole
from arena.results.verdict import Status

KERNEL_LIMIT_BYTES = 1 << 20
"""A kernel file that is larger is not taken."""


class EventKind(StrEnum):
    """What an event of a transcript is. The formats of all agents are brought into these."""

    MESSAGE = "message"
    """Text that the agent said."""
    REASONING = "reasoning"
    """Text that the model thought, where the agent shows it."""
    TOOL_CALL = "tool_call"
    """A tool was called; `tool` names it, `text` holds its arguments, `diff` an edit as a unified diff."""
    TOOL_RESULT = "tool_result"
    """What the tool answered; `call` says to which call."""
    EVALUATION = "evaluation"
    """The judge evaluated a kernel; `text` is the feedback, `number` the evaluation."""
    USAGE = "usage"
    """Tokens or cost that belong to no other event."""
    NOTE = "note"
    """What the harness or the agent's program says of the session: a start, a retry, a limit, an error."""


@dataclass(frozen=True)
class Tokens:
    """Tokens of a model: `input` includes those read from the provider's cache, which `cached` counts once more."""

    input: Whole = 0
    output: Whole = 0
    cached: Whole = 0

    @property
    def total(self) -> int:
        """What a limit on tokens counts."""
        return self.input + self.output

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.input + other.input, self.output + other.output, self.cached + other.cached)


@dataclass(frozen=True)
class Event:
    """One event of a transcript. `at_s`: seconds since the agent started, pauses included."""

    kind: EventKind
    text: str = ""
    at_s: float = 0.0
    tool: str = ""
    call: str = ""
    """the agent's own name for a tool call, which joins it to its result"""
    parent: str = ""
    """the tool call inside which a subagent did this; empty for the agent itself"""
    diff: str = ""
    failed: bool = False
    number: int = 0
    tokens: Tokens = Tokens()
    """what this event used up, not a running total"""
    cost_usd: float = 0.0


class Ending(StrEnum):
    """How a session ended."""

    FINISHED = "finished"
    """The agent ended by itself, with exit code 0."""
    FAILED = "failed"
    """The agent's program ended with another exit code or a signal."""
    WALL_CLOCK = "wall_clock"
    """Its time was up."""
    TOKENS = "tokens"
    """It used more tokens than its limit."""
    COST = "cost"
    """It cost more than its limit."""
    DISK = "disk"
    """It wrote more than its limit."""


@dataclass(frozen=True)
class Limits:
    """What one trial of an agent may use up; None is no limit. Enforced by the harness."""

    wall_clock_s: Seconds = 1800.0
    """time in which the agent was not stopped for a measurement"""
    evaluations: Count = 50
    tokens: Count | None = None
    cost_usd: NotNegative | None = None
    disk_bytes: Count = 2 << 30


@dataclass(frozen=True)
class Evaluated:
    """One call of `./evaluate`: a point of the curve "speedup over evaluations and minutes"."""

    number: Count
    at_s: Seconds
    """seconds since the agent started, without the pauses"""
    seconds: Seconds
    """how long the evaluation took, waiting included"""
    status: Status
    speedup: Positive | None
    """geometric mean over the seen cases; None unless all passed"""
    candidate_hash: str


@dataclass(frozen=True)
class Flag:
    """A place where an agent reaches for what it must not see; for a person to read, never a verdict."""

    event: Count
    """index of the event"""
    reaches_for: str
    excerpt: str


@dataclass(frozen=True)
class Session:
    """What is recorded of an agent's work on one trial. Times in seconds."""

    agent: str
    """the name of the definition"""
    version: str
    """what the agent's program says of its version"""
    ending: Ending
    detail: str
    active_s: Seconds
    paused_s: Seconds
    isolation: str
    model: str = ""
    evaluations: tuple[Evaluated, ...] = ()
    refused: Count = 0
    """calls of `./evaluate` beyond the limit"""
    tokens: Tokens = Tokens()
    cost_usd: Number = 0.0
    events: Count = 0
    flags: tuple[Flag, ...] = field(default_factory=tuple)

    @property
    def best(self) -> Evaluated | None:
        """The fastest kernel that passed, or None."""
        passed = [one for one in self.evaluations if one.speedup is not None]
        return max(passed, key=lambda one: one.speedup or 0.0, default=None)
