"""Answers of the server: tasks, steps, and the final verdict, in which held-out cases are only counted."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from arena.platforms.by_hand import INCLUDE
from arena.platforms.toolchains.task_header import signature
from arena.processes.scratch import scratch
from arena.results.effort import Effort
from arena.results.environment import Environment
from arena.results.outcome import Outcome, ending, outcome_of
from arena.results.record import Evaluation, Split
from arena.results.reward import rewards_of
from arena.results.session import Limits
from arena.results.verdict import Stage, Status
from arena.runs.serve.clients import Usage
from arena.runs.service.workspace import COMMAND, TEXT, prepare, prompt_text
from arena.task.corpus.split import TaskSplit
from arena.task.definition import Task

_PREFACE = (
    "> This task is served: there is no folder and no command. What the text calls `./evaluate` is the request "
    "`evaluate` of an episode, its files are in `files`, and the kernel that counts is the one given to `finish`, "
    "else the best one evaluated.\n\n"
)
_RULES = re.compile(r"^## Rules\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_SEEN_STAGES = (Stage.CORRECTNESS, Stage.PERFORMANCE)


class SeenCase(msgspec.Struct, frozen=True):
    """A case to develop against."""

    case: str
    sizes: str


class TaskView(msgspec.Struct, frozen=True):
    """Answer to GET /tasks/TASK. Field by field: docs/evaluate/serve.md."""

    task: str
    task_type: str
    text: str
    signature: str
    kernel_file: str
    kernel: str | None
    seen: tuple[SeenCase, ...]
    rules: str
    files: dict[str, str]
    device: str
    emulated: bool
    evaluations: int
    minutes: float


class Step(msgspec.Struct, frozen=True):
    """Answer to `evaluate`."""

    text: str
    result: msgspec.Raw
    reward: float
    bounded_reward: float
    done: bool
    evaluation: int
    left: int


class EpisodeView(msgspec.Struct, frozen=True):
    """Answer to POST /episodes and to `status`."""

    episode: str
    task: str
    agent: str
    attempt: int
    seed: int | None
    effort: Effort
    evaluations: int
    left: int
    best_speedup: float | None
    minutes: float
    finished: bool


class ServerView(msgspec.Struct, frozen=True):
    """Answer to GET /status."""

    run: str
    device: str
    judges: int
    tasks: int
    open: int
    finished: int
    waiting: int
    """evaluations that are judged or wait for a judge"""
    capacity: int
    evaluations_an_hour: float
    """since the server began, of every kind"""
    used: Usage | None = None
    """by the client that asks, and its limits"""


class ServedTask(msgspec.Struct, frozen=True):
    """One item of the answer to GET /tasks."""

    task: str
    task_type: str
    split: TaskSplit


class EpisodeTally(msgspec.Struct, frozen=True):
    """The cases of one split, counted. `speedup`: geometric mean over those that passed and were timed."""

    cases: int
    passed: int
    speedup: float | None


class Final(msgspec.Struct, frozen=True):
    """Answer to `finish`. `heldout` is null where the kernel failed before, or nothing was handed in."""

    text: str
    outcome: Outcome
    stage_status: Status
    detail: str
    reward: float
    bounded_reward: float
    speedup: float | None
    seen: EpisodeTally | None
    heldout: EpisodeTally | None
    done: bool = True
    emulated: bool = False
    """whether `speedup` and `reward` are of an emulation, which says nothing of a GPU's speed"""


def task_view(task: Task, environment: Environment, limits: Limits) -> TaskView:
    """The task as an agent in a workspace sees it, without the workspace."""
    with scratch("episode") as place:
        folder = Path(place)
        prepare(folder, task, environment, limits)
        text, files = prompt_text(folder), _files(folder)
    rules = _RULES.search(text)
    return TaskView(
        task=task.id,
        task_type=task.task_type.value,
        text=_PREFACE + text,
        signature=signature(task),
        kernel_file=task.task_type.kernel_file,
        kernel=files.get(task.task_type.kernel_file),
        seen=tuple(SeenCase(case.id, case.label) for case in task.seen),
        rules=rules[1].strip() if rules else "",
        files=files,
        device=f"{environment.device.name} ({environment.device.arch})",
        emulated=environment.device.emulated,
        evaluations=limits.evaluations,
        minutes=limits.wall_clock_s / 60,
    )


def final_of(evaluation: Evaluation) -> Final:
    """The verdict. A detail is given for stages that know seen cases only: held-out dtypes are compiled for, too."""
    failed = evaluation.failure
    detail = failed.detail if failed is not None and failed.stage in _SEEN_STAGES else ""
    seen = _tally(evaluation, Split.SEEN)
    unseen = any(verdict.stage is Stage.HELDOUT for verdict in evaluation.verdicts)
    heldout = _tally(evaluation, Split.HELDOUT) if unseen else None
    outcome, rewards = outcome_of(evaluation), rewards_of(evaluation)
    counts = filter(None, (_counted("seen", seen), _counted("held-out", heldout)))
    return Final(
        text=f"{ending(outcome, evaluation.status)}: {'; '.join(counts)}",
        outcome=outcome,
        stage_status=evaluation.status,
        detail=detail,
        reward=rewards.dense,
        bounded_reward=rewards.bounded,
        speedup=evaluation.seen_speedup,
        seen=seen,
        heldout=heldout,
        emulated=evaluation.environment.device.emulated,
    )


def nothing_submitted() -> Final:
    """The verdict where no kernel was given and none had passed an evaluation."""
    outcome, rewards = outcome_of(None), rewards_of(None)
    detail = "no kernel was given, and none had passed an evaluation"
    return Final(
        text=f"{outcome}: {detail}",
        outcome=outcome,
        stage_status=Status.NOTHING_SUBMITTED,
        detail=detail,
        reward=rewards.dense,
        bounded_reward=rewards.bounded,
        speedup=None,
        seen=None,
        heldout=None,
    )


def _files(folder: Path) -> dict[str, str]:
    """What the workspace holds beside the text and the command; the headers for a compiler by hand are left out."""
    found = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {
        name: path.read_text(encoding="utf-8")
        for name, path in found.items()
        if name not in (TEXT, COMMAND) and not name.startswith(f"{INCLUDE}/")
    }


def _tally(evaluation: Evaluation, split: Split) -> EpisodeTally:
    statuses = [result.candidate for result in evaluation.split(split)]
    return EpisodeTally(len(statuses), statuses.count(Status.PASSED), evaluation.mean_speedup(split))


def _counted(name: str, tally: EpisodeTally | None) -> str:
    if tally is None:
        return ""
    timed = f", {tally.speedup:.3g}x" if tally.speedup is not None else ""
    return f"{tally.passed} of {tally.cases} {name} cases passed{timed}"
