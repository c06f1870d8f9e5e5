"""Held-out cases that nobody knew before: drawn from a secret seed, and checked with the task's baseline.

Used by `arena verify`, for one verification, and by `arena serve --private-heldout`, for one episode.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from arena.errors import InfrastructureError
from arena.processes.scratch import scratch
from arena.results.record import Split
from arena.results.verdict import Status
from arena.runs.service.judge_pool import JudgePool
from arena.task.corpus.sampling import sample_cases, to_yaml
from arena.task.corpus.task_folder import HELDOUT
from arena.task.definition import Case, Task
from arena.task.options import Options

_SEED_BITS = 53
_SPARE = 4
"""cases drawn beyond those that are wanted, in place of any that the baseline fails"""
_FEWEST = 5
"""cases of a held-out file; its schema has the same number"""
_EMULATED_WORK = 1e5
"""operations plus bytes of a private case on the CPU platform, which emulates each program of a launch"""


def secret_seed() -> int:
    """Return a seed that nobody can foresee."""
    return secrets.randbits(_SEED_BITS)


def work_limit(options: Options, judges: JudgePool) -> float | None:
    """Return how large a private case may be."""
    if judges.environment.device.emulated:
        return min(options.max_work or _EMULATED_WORK, _EMULATED_WORK)
    return options.max_work


def passing(
    task: Task, cases: tuple[Case, ...], judges: JudgePool, options: Options, own: str = ""
) -> tuple[Case, ...]:
    """Return the cases that the baseline passes.

    Args:
        task: the task, as the corpus has it.
        cases: those that were drawn.
        judges: who judge.
        options: of the evaluation.
        own: the text of cases that will stand before them.
    """
    with scratch("private") as place:
        file = Path(place, HELDOUT)
        file.write_text(own + to_yaml(cases), encoding="utf-8")
        found = judges.check_baseline(task, file, options)
    first = len(task.heldout) + 1 if own else 1
    return tuple(
        case for number, case in enumerate(cases, first) if found.get(f"{Split.HELDOUT}-{number:02d}") == Status.PASSED
    )


def drawn(task: Task, seed: int, judges: JudgePool, options: Options) -> tuple[Case, ...]:
    """Draw cases in place of the task's own, as many and some spare ones. Raises `UsageError`: too small a domain."""
    return sample_cases(task, max(len(task.heldout), _FEWEST) + _SPARE, seed, work_limit(options, judges))


def private_file(task: Task, seed: int, judges: JudgePool, options: Options) -> str:
    """Return the text of a held-out file in place of the task's own, whose cases the baseline passes.

    Raises:
        UsageError: the domain has too few cases.
        InfrastructureError: the baseline passes too few, or the judge failed.
    """
    kept = passing(task, drawn(task, seed, judges, options), judges, options)[: max(len(task.heldout), _FEWEST)]
    if len(kept) < _FEWEST:
        raise InfrastructureError(
            f"{task.id}: the baseline passes {len(kept)} of the private held-out cases, "
            f"and {_FEWEST} are needed; serve without --private-heldout, or leave this task out"
        )
    return to_yaml(kept)
