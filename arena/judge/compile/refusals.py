"""Evaluations of candidates that get no further than the first gate, made without a device."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from arena.judge.selection import not_run
from arena.results.environment import Environment
from arena.results.portability import TargetBuild
from arena.results.record import Evaluation
from arena.results.verdict import Verdict
from arena.task.definition import Case, Task


def refusal(
    task: Task,
    candidate: Path,
    cases: Sequence[Case],
    environment: Environment,
    verdict: Verdict,
    targets: tuple[TargetBuild, ...] = (),
) -> Evaluation:
    """Return what a judge says of a candidate that fails its first stage: no case was run."""
    return Evaluation(
        task=task.id,
        task_type=task.task_type,
        task_hash=task.content_hash,
        candidate_hash=hashlib.sha256(candidate.read_bytes()).hexdigest(),
        environment=environment,
        verdicts=(verdict,),
        cases=tuple(not_run(case) for case in cases),
        seconds={verdict.stage.value: verdict.seconds, "build": 0.0},
        targets=targets,
    )
