"""Evaluations with known numbers: what docs/evaluate/workspace.md shows, and what tests of the feedback look at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from arena.results.environment import DeviceFacts, Environment
from arena.results.record import CaseResult, CaseTiming, Estimate, Evaluation, Mode, Round, Split
from arena.results.session import Evaluated
from arena.results.verdict import Stage, Status, Verdict

H200 = DeviceFacts("cuda", "nvidia", "sm_90", "NVIDIA H200", 32, 139 << 30, 50 << 20, "580", 4800.0, {"float16": 989.0})
MI300X = DeviceFacts("rocm", "amd", "gfx942", "AMD Instinct MI300X", 64, 192 << 30, 256 << 20, "6.10", 5300.0)
CPU = DeviceFacts("cpu", "cpu", "cpu", "test CPU", 32, 8 << 30, 0)
VERSIONS = {"python": "3.12.3", "torch": "2.8.0", "triton": "3.4.0"}
GATES = (Stage.COMPILE, Stage.CORRECTNESS, Stage.PERFORMANCE)


def environment(device: DeviceFacts = H200) -> Environment:
    return Environment(device, "bubblewrap", VERSIONS)


def passed(
    number: int, label: str, baseline_ms: float, kernel_ms: float, *, noisy: bool = False, mode: Mode = Mode.GRAPH
) -> CaseResult:
    """A seen case that was right and timed."""
    return CaseResult(
        case=f"seen-{number:02d}",
        split=Split.SEEN,
        kind="",
        label=label,
        baseline=Status.PASSED,
        candidate=Status.PASSED,
        error_ratio=0.0123,
        timing=CaseTiming(
            baseline_ms=estimate(baseline_ms),
            candidate_ms=estimate(kernel_ms),
            speedup=estimate(baseline_ms / kernel_ms),
            mode=mode,
            calls_short=10,
            calls_long=80,
            cache="distinct sets",
            rounds=(Round(0.001, 0.001, 0.002, 0.002),),
            roofline_ms=kernel_ms / 4,
            noisy=noisy,
        ),
    )


def failed(number: int, label: str, status: Status, detail: str, error_ratio: float | None = None) -> CaseResult:
    """A seen case that was not right."""
    name = f"seen-{number:02d}"
    return CaseResult(name, Split.SEEN, "", label, Status.PASSED, status, detail, error_ratio)


def estimate(value: float) -> Estimate:
    return Estimate(value, value * 0.995, value * 1.005)


def evaluation(
    *cases: CaseResult,
    fails: Verdict | None = None,
    device: DeviceFacts = H200,
    compile_log: str = "",
) -> Evaluation:
    """One that passed every gate, or stopped at `fails`."""
    before = GATES if fails is None else GATES[: GATES.index(fails.stage)]
    verdicts = [*(Verdict(stage, Status.PASSED) for stage in before), *([fails] if fails is not None else [])]
    return Evaluation(
        task="triton2triton/normalization/rms_norm",
        task_type="triton2triton",
        task_hash="t0",
        candidate_hash="c0",
        environment=environment(device),
        verdicts=tuple(verdicts),
        cases=cases,
        compile_log=compile_log,
    )


def evaluated(result: Evaluation, number: int = 7) -> Evaluated:
    return Evaluated(number, 312.5, 4.25, result.status, result.seen_speedup, result.candidate_hash)


GOOD = evaluation(
    passed(1, "M=4 N=256 float32", 0.0031, 0.0017),
    passed(2, "M=2048 N=4096 float16", 0.0412, 0.0225, noisy=True),
)
_WORST = (
    "y: 16 of 8388608 elements wrong, [3, 16] to [3, 31]: only row 3, column 16 to 31 of 4096; "
    "worst at [3, 17]: got 0.5, expected 0.25 ± 0.006 (41.7 × tolerance)"
)
WRONG = evaluation(
    replace(passed(1, "M=4 N=256 float32", 0.0031, 0.0017), timing=None),
    failed(2, "M=2048 N=4096 float16", Status.WRONG_RESULT, _WORST, 41.7),
    fails=Verdict(Stage.CORRECTNESS, Status.WRONG_RESULT, f"M=2048 N=4096 float16: {_WORST}"),
)


def kernel(tmp_path: Path, name: str) -> Path:
    """A candidate that is a comment."""
    path = tmp_path / name
    path.write_text(f"# {name}", encoding="utf-8")
    return path
