"""Stages, statuses and verdicts: the closed vocabulary in which a result is stated."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from arena.results.bounds import Seconds


class Stage(StrEnum):
    """The gates of an evaluation, in order."""

    COMPILE = "compile"
    CORRECTNESS = "correctness"
    PERFORMANCE = "performance"
    HELDOUT = "heldout"


class Status(StrEnum):
    """How an evaluation, a stage or a case ended. A new member is a decision: it needs a docstring."""

    PASSED = "passed"
    """Every check held."""
    COMPILE_ERROR = "compile_error"
    """The compiler (hipcc, nvcc, g++, Triton) refused the candidate."""
    LOAD_ERROR = "load_error"
    """The file could not be imported or loaded, or does not define the entry."""
    LAUNCH_ERROR = "launch_error"
    """The entry raised, returned an error code, or the device reported one."""
    WRONG_RESULT = "wrong_result"
    """An output is outside its tolerance, or was not written."""
    NONDETERMINISTIC = "nondeterministic"
    """The same inputs gave a right and a wrong answer."""
    INPUT_MUTATED = "input_mutated"
    """An input that is not declared mutable changed."""
    OUT_OF_BOUNDS = "out_of_bounds"
    """A canary around a buffer was overwritten."""
    TIMING_MISMATCH = "timing_mismatch"
    """The worker's own clock and the judge's disagree beyond the noise, or the baseline's speed moved."""
    IMPLAUSIBLE = "implausible"
    """Faster than the hardware allows, or than its own single call explains."""
    TIMEOUT = "timeout"
    """A limit on wall-clock time was reached."""
    CRASH = "crash"
    """The worker ended by itself: a signal, an exit, a corrupted channel."""
    OUT_OF_MEMORY = "out_of_memory"
    """The candidate asked for more memory than its limit or the device holds."""
    RULE_VIOLATION = "rule_violation"
    """The candidate does what the task type forbids."""
    WAVE_SIZE_DEPENDENT = "wave_size_dependent"
    """Right at one wave size and wrong at another."""
    NOTHING_SUBMITTED = "nothing_submitted"
    """The agent handed in no candidate."""
    NOT_RUN = "not_run"
    """An earlier case or stage ended the evaluation before this one."""
    HARNESS_ERROR = "harness_error"
    """The harness failed; says nothing about the candidate, and keeps its place in the denominator."""


CORRECT = (Status.PASSED, Status.TIMING_MISMATCH, Status.IMPLAUSIBLE)
"""Statuses with right outputs; the last two cost the speedup, not the correctness."""


@dataclass(frozen=True)
class Verdict:
    """What a stage said: its status, one sentence of detail, and the seconds it took."""

    stage: Stage
    status: Status
    detail: str = ""
    seconds: Seconds = 0.0

    @property
    def passed(self) -> bool:
        """Return whether the gate is open for the next stage."""
        return self.status is Status.PASSED
