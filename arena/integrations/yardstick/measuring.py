"""Candidates made of engine kernels, evaluated on the timed cases of their tasks. Used by `arena yardstick`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from arena.integrations.yardstick.adapters import Adapter, digest
from arena.integrations.yardstick.bundle import CandidateText
from arena.integrations.yardstick.engines import Engine
from arena.integrations.yardstick.table import MEAN, Row
from arena.judge.selection import bounded, select_cases
from arena.processes.scratch import scratch
from arena.reports.rows import combine
from arena.results.environment import Environment
from arena.results.record import CaseResult, Evaluation
from arena.results.verdict import Status
from arena.runs.service.judge_pool import JudgePool
from arena.task.definition import Case, Task
from arena.task.options import Options

CALL_TIMEOUT_S = 300.0
"""of one call: in the first, Triton may tune a kernel over dozens of configurations"""
_DETAIL_CHARACTERS = 300


@dataclass(frozen=True)
class Yardstick:
    """An engine's kernel as a candidate for one task."""

    adapter: Adapter
    engine: Engine
    candidate: CandidateText
    task: Task

    @property
    def digest(self) -> str:
        """The hash that tells this measurement from another."""
        return digest(self.candidate, self.task.content_hash)


@dataclass(frozen=True)
class MeasuredCase:
    """The judge's result on one case of a task."""

    case: Case
    result: CaseResult | None
    detail: str = ""

    @property
    def status(self) -> Status:
        """Status of the candidate on this case."""
        return self.result.candidate if self.result else Status.NOT_RUN


def measure(yardstick: Yardstick, judges: JudgePool, options: Options, *, every_case: bool = False) -> list[Row]:
    """Evaluate one yardstick, and return its rows: one for each case, and one for the geometric mean.

    An engine need not support every case. Where not all of them pass, each is evaluated on its own.

    Args:
        yardstick: the candidate and its task.
        judges: they are running.
        options: as for any evaluation; `only` is set here.
        every_case: also the seen cases that are not timed.

    Raises:
        InfrastructureError: the harness or the device failed.
    """
    task, environment = yardstick.task, judges.environment
    cases = tuple(case for case in task.seen if case.timed or every_case)
    runnable = select_cases(task, cases, bounded(options, environment.device))
    with scratch("yardstick") as folder:
        file = Path(folder) / task.task_type.kernel_file
        file.write_text(yardstick.candidate.text, encoding="utf-8")

        def evaluate(chosen: Sequence[Case]) -> Evaluation:
            only = structs.replace(options, case=tuple(case.id for case in chosen))
            return judges.evaluate(task, file, only)

        together = evaluate(runnable)
        found = _measured(runnable, together)
        if together.status is not Status.PASSED and len(runnable) > 1:
            found = [each for case in runnable for each in _measured([case], evaluate([case]))]
    common = _common_cells(yardstick, environment, options)
    return [{**common, **row} for row in (*map(_case_row, found), _mean_row(found, len(cases)))]


def _measured(cases: Sequence[Case], evaluation: Evaluation) -> list[MeasuredCase]:
    results = {result.case: result for result in evaluation.cases}
    detail = evaluation.failure.detail if evaluation.failure else ""
    return [MeasuredCase(case, results.get(case.id), detail) for case in cases]


def _common_cells(yardstick: Yardstick, environment: Environment, options: Options) -> dict[str, str]:
    versions = " ".join(f"{name} {environment.versions[name]}" for name in sorted(environment.versions))
    return {
        "task": yardstick.task.id,
        "engine": yardstick.engine.name,
        "version": yardstick.engine.version,
        "files": " ".join(path.as_posix() for path in yardstick.candidate.defining),
        "device": environment.device.name,
        "versions": versions,
        "effort": str(options.effort),
        "digest": yardstick.digest,
    }


def _case_row(found: MeasuredCase) -> dict[str, str]:
    result = found.result
    cells = {"case": found.case.id, "shape": found.case.label, "status": str(found.status)}
    if found.status is not Status.PASSED:
        detail = result.detail if result and result.detail else found.detail
        cells["detail"] = " ".join(detail.split())[-_DETAIL_CHARACTERS:]
    if result is None or result.timing is None:
        return cells
    timing, speedup = result.timing, result.speedup
    cells |= {"baseline_ms": f"{timing.baseline_ms.value:.5g}", "candidate_ms": f"{timing.candidate_ms.value:.5g}"}
    if speedup is not None:
        cells |= {"speedup": f"{speedup.value:.4g}"}
        cells |= {"speedup_low": f"{speedup.low:.4g}", "speedup_high": f"{speedup.high:.4g}"}
    if timing.roofline_fraction is not None:
        cells["roofline_fraction"] = f"{timing.roofline_fraction:.3g}"
    return cells | {"noisy": "yes" if timing.noisy else "no"}


def _mean_row(cases: Sequence[MeasuredCase], planned: int) -> dict[str, str]:
    """Return the row over the cases that passed; its status is `passed` only where all did."""
    passed = [found.result for found in cases if found.result and found.status is Status.PASSED]
    mean = combine(result.speedup for result in passed if result.speedup is not None)
    failed = next((found.status for found in cases if found.status not in (Status.PASSED, Status.NOT_RUN)), None)
    status = failed or (Status.PASSED if len(passed) == planned else Status.NOT_RUN)
    cells = {"case": MEAN, "shape": f"{len(passed)} of {planned} cases", "status": str(status)}
    if mean is not None:
        cells |= {"speedup": f"{mean.value:.4g}", "speedup_low": f"{mean.low:.4g}", "speedup_high": f"{mean.high:.4g}"}
    return cells


def collect(yardsticks: Sequence[Yardstick], folder: Path) -> Iterator[Path]:
    """Copy the engine files that candidates are made of, with their engines' versions, and yield where they lie."""
    for yardstick in yardsticks:
        for path in yardstick.candidate.files:
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(yardstick.engine.root / path, place)
            yield place
        noted = folder / yardstick.engine.version_file.name
        noted.write_text(f"{yardstick.engine.version}\n", encoding="utf-8")
