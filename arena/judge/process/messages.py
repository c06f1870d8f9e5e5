"""Messages between the runner and a judge or a builder."""

from __future__ import annotations

import errno

import msgspec

from arena.errors import ArenaError, DeviceMemoryFull, InfrastructureError, MachineError, what_was_raised
from arena.processes.printable import shortened
from arena.results.check import TaskCheck
from arena.results.environment import Environment
from arena.results.messages import message
from arena.results.record import Evaluation
from arena.task.options import Options

_DETAIL_CHARACTERS = 8000
_NO_ROOM = "OutOfMemoryError"
"""PyTorch's class; its name is enough, since a runner does not import PyTorch"""
SEEN, HELDOUT = "seen", "heldout"
"""folders of a candidate's compiled kernels, by split"""


class JudgeMessage(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Base of all messages."""


class Evaluate(JudgeMessage, frozen=True):
    """Evaluate one candidate file for one task folder."""

    task: str
    candidate: str
    options: Options
    heldout: str = ""
    """a file of held-out cases in place of the task's own"""
    compiled: str = ""
    """the folder with what a builder compiled of it"""


class Expect(JudgeMessage, frozen=True):
    """This evaluation will be asked for, once a builder has compiled its candidate, which is "" here.

    It has no answer, and is of no account where another message follows at once.
    """

    evaluation: Evaluate


class CheckBaseline(JudgeMessage, frozen=True):
    """Check the baseline on held-out cases: fresh ones, before anybody relies on them, or ("") the task's own."""

    task: str
    heldout: str
    options: Options


class CheckTask(JudgeMessage, frozen=True):
    """Check a task itself: every item but the mutants, or, with `most_mutants`, at most so many of these.

    For other GPUs each signature of a Triton kernel is built once, or `every_launch` of every case.
    """

    task: str
    options: Options
    most_mutants: int = 0
    every_launch: bool = False
    timing: bool = True
    """whether a GPU also times kernels against themselves"""


class Compile(JudgeMessage, frozen=True):
    """Compile one candidate file for the device of `environment`, no such device required.

    Sent to a builder, with the socket on which it is to answer beside it.
    """

    task: str
    candidate: str
    options: Options
    environment: Environment
    heldout: str = ""
    """a file of held-out cases in place of the task's own"""
    into: str = ""
    """the folder for compiled Triton kernels; without one they are not kept"""


class Progress(JudgeMessage, frozen=True):
    """The progress of an evaluation: a stage, and how far into it."""

    stage: str
    done: int
    total: int


class Hello(JudgeMessage, frozen=True):
    """Said once, when the judge is warm."""

    environment: Environment


class EvaluationAnswer(JudgeMessage, frozen=True):
    """The evaluation asked for."""

    evaluation: Evaluation


class Compiled(JudgeMessage, frozen=True):
    """A builder's result: None, or the evaluation of a candidate that does not get past the compile stage."""

    refused: Evaluation | None


class HarnessFailed(JudgeMessage, frozen=True):
    """The harness failed; nothing is said about the candidate.

    `machine`: a retry on this machine fails too. `full`: the judge found no room on the device.
    """

    detail: str
    machine: bool = False
    full: bool = False

    def error(self, before: str = "") -> InfrastructureError:
        """Return the exception to raise for it, with `before` in front of the detail."""
        kind = MachineError if self.machine else DeviceMemoryFull if self.full else InfrastructureError
        return kind(before + self.detail)

    @staticmethod
    def of(problem: Exception) -> HarnessFailed:
        """Return the message for an exception that is being handled; one that nobody foresaw brings its traceback."""
        said = str(problem) if isinstance(problem, ArenaError) else what_was_raised()
        if isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT):
            place = problem.filename2 or problem.filename or "a file"
            said = f"{place} could not be written: {problem.strerror}; make room, or set TMPDIR to another folder"
        full = isinstance(problem, DeviceMemoryFull) or type(problem).__name__ == _NO_ROOM
        if full and not isinstance(problem, ArenaError):
            said = f"{said}\n{message('judge_out_of_memory')}"
        return HarnessFailed(shortened(said, _DETAIL_CHARACTERS), isinstance(problem, MachineError), full)


class BaselineChecked(JudgeMessage, frozen=True):
    """By case id: `passed`, or what is wrong. A case too large for this platform is not in it."""

    cases: dict[str, str]


class TaskChecked(JudgeMessage, frozen=True):
    """The check asked for."""

    check: TaskCheck


ToJudge = Evaluate | Expect | CheckBaseline | CheckTask
FromBuilder = Compiled | HarnessFailed
FromJudge = Hello | Progress | EvaluationAnswer | BaselineChecked | TaskChecked | HarnessFailed
