"""Write the judge's answers to an agent as JSON: docs/evaluate/workspace.md has them field by field."""

from __future__ import annotations

from dataclasses import dataclass

from arena.results.effort import Effort
from arena.results.portability import BuildOutcome, KernelUse, MachineCodeOutcome, TargetBuild
from arena.results.profile import Profile
from arena.results.record import CaseResult, Evaluation, Split
from arena.results.session import Evaluated
from arena.results.verdict import Stage, Status
from arena.runs.service.logs import cleaned, shortened

DETAIL_CHARACTERS = 3000


@dataclass(frozen=True)
class CaseContent:
    """One seen case, as JSON has it; docs/evaluate/workspace.md says what each field means."""

    case: str
    sizes: str
    status: Status
    detail: str
    error_ratio: float | None
    baseline_ms: float | None
    kernel_ms: float | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    roofline_fraction: float | None
    mode: str | None
    noisy: bool


@dataclass(frozen=True)
class TargetContent:
    """The kernel built for a cross-compilation target."""

    target: str
    outcome: BuildOutcome
    detail: str
    kernels: tuple[KernelUse, ...]
    machine_code: MachineCodeOutcome | None
    machine_code_detail: str


@dataclass(frozen=True)
class Content:
    """The whole answer, as JSON has it."""

    status: Status
    stage: Stage | None
    detail: str
    evaluation: int
    left: int
    speedup: float | None
    seconds: float
    effort: Effort
    device: str
    emulated: bool
    compile_log: str
    cases: tuple[CaseContent, ...]
    targets: tuple[TargetContent, ...]
    profile: Profile | None


@dataclass(frozen=True)
class RefusalContent:
    """The answer where nothing was evaluated."""

    status: None
    detail: str


def content_of(evaluation: Evaluation, evaluated: Evaluated, left: int) -> Content:
    """The answer to one call: the gates before the held-out cases, and of all cases the seen ones."""
    failed = evaluation.failure
    device = evaluation.environment.device
    return Content(
        status=evaluation.status,
        stage=failed.stage if failed else None,
        detail=shortened(cleaned(failed.detail)) if failed else "",
        evaluation=evaluated.number,
        left=left,
        speedup=evaluated.speedup,
        seconds=round(evaluated.seconds, 2),
        effort=evaluation.effort,
        device=f"{device.name} ({device.arch})",
        emulated=device.emulated,
        compile_log=shortened(cleaned(evaluation.compile_log)),
        cases=tuple(_case(result) for result in evaluation.split(Split.SEEN)),
        targets=tuple(_target(build) for build in evaluation.targets),
        profile=evaluation.profile,
    )


def _case(result: CaseResult) -> CaseContent:
    timing = result.timing
    counted = result.speedup
    return CaseContent(
        case=result.case,
        sizes=result.label,
        status=result.candidate,
        detail=shortened(cleaned(result.detail), characters=DETAIL_CHARACTERS),
        error_ratio=_finite(result.error_ratio),
        baseline_ms=timing.baseline_ms.value if timing else None,
        kernel_ms=timing.candidate_ms.value if timing else None,
        speedup=counted.value if counted else None,
        speedup_low=counted.low if counted else None,
        speedup_high=counted.high if counted else None,
        roofline_fraction=timing.roofline_fraction if timing else None,
        mode=timing.mode if timing else None,
        noisy=timing.noisy if timing else False,
    )


def _finite(value: float | None) -> float | None:
    """JSON has no infinity: an error without bound is none that can be put into a number."""
    return value if value is not None and abs(value) != float("inf") and value == value else None


def _target(build: TargetBuild) -> TargetContent:
    detail, ran = (shortened(cleaned(text), characters=DETAIL_CHARACTERS) for text in (build.detail, _ran(build)))
    outcome = build.machine_code.outcome if build.machine_code else None
    return TargetContent(build.target, build.outcome, detail, build.kernels, outcome, ran)


def _ran(build: TargetBuild) -> str:
    found = build.machine_code
    return f"{found.detail} ({found.case})" if found else ""
