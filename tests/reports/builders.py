"""Factories of small runs with known numbers, shared by the tests of the analysis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from arena.results.environment import DeviceFacts, Environment
from arena.results.portability import BuildOutcome, KernelUse, TargetBuild
from arena.results.record import CaseResult, CaseTiming, Estimate, Evaluation, Mode, Round, RunInfo, Split, Trial
from arena.results.session import Ending, Evaluated, Flag, Session, Tokens
from arena.results.verdict import Stage, Status, Verdict
from arena.runs.records import RunRecords

GATES = (Stage.COMPILE, Stage.CORRECTNESS, Stage.PERFORMANCE)
STAGE_OF = {
    Status.COMPILE_ERROR: Stage.COMPILE,
    Status.LOAD_ERROR: Stage.COMPILE,
    Status.TIMING_MISMATCH: Stage.PERFORMANCE,
    Status.IMPLAUSIBLE: Stage.PERFORMANCE,
}
GPU = DeviceFacts("rocm", "amd", "gfx942", "AMD Instinct MI300X", 64, 192 << 30, 256 << 20, "6.10.5", 5300.0)
CPU = DeviceFacts("cpu", "cpu", "x86_64", "16-core test CPU", 64, 64 << 30, 32 << 20)


def environment(device: DeviceFacts = GPU, **versions: str) -> Environment:
    return Environment(device, "bubblewrap", versions or {"torch": "2.8.0", "triton": "3.4.0", "python": "3.11.2"})


def estimate(value: float, spread: float = 0.02) -> Estimate:
    return Estimate(value, value * (1 - spread), value * (1 + spread))


def rounds_of(speedup: float, baseline_ms: float, calls: int = 10) -> tuple[Round, ...]:
    """Nine rounds that give these numbers, with an interval of about 1.5 %."""
    baseline_s = baseline_ms / 1e3
    found = []
    for place in range(9):
        candidate_s = baseline_s / speedup * math.exp(0.0032 * (place - 4))
        found.append(Round(0.001, 0.001, 0.001 + baseline_s * calls, 0.001 + candidate_s * calls))
    return tuple(found)


def timing(
    speedup: float,
    baseline_ms: float = 1.0,
    *,
    noisy: bool = False,
    doubted: str = "",
    roofline_ms: float | None = None,
) -> CaseTiming:
    return CaseTiming(
        estimate(baseline_ms),
        estimate(baseline_ms / speedup),
        estimate(speedup),
        Mode.GRAPH,
        10,
        20,
        "distinct sets",
        rounds_of(speedup, baseline_ms),
        roofline_ms=roofline_ms,
        noisy=noisy,
        doubted=doubted,
    )


def case(
    name: str = "s1",
    speedup: float | None = 2.0,
    *,
    split: Split = Split.SEEN,
    kind: str = "",
    baseline: Status = Status.PASSED,
    candidate: Status = Status.PASSED,
    baseline_ms: float = 1.0,
    noisy: bool = False,
    doubted: str = "",
    roofline_ms: float | None = None,
    calls: int = 0,
    gpu_share: float = 0.0,
    regime: str = "",
) -> CaseResult:
    timed = speedup is not None and candidate in (Status.PASSED, Status.TIMING_MISMATCH, Status.IMPLAUSIBLE)
    clock = None
    if timed and speedup:
        clock = timing(speedup, baseline_ms, noisy=noisy, doubted=doubted, roofline_ms=roofline_ms)
    label = f"{name} M=4 N=256 float32"
    recorded = CaseResult(name, split, kind, label, baseline, candidate, timing=clock, calls=calls, gpu_share=gpu_share)
    return replace(recorded, case=f"{name}.{regime}", regime=regime, label=f"{label} {regime}") if regime else recorded


def heldout(
    name: str = "h1",
    speedup: float | None = 1.5,
    *,
    kind: str = "edge",
    baseline: Status = Status.PASSED,
    candidate: Status = Status.PASSED,
) -> CaseResult:
    return case(name, speedup, split=Split.HELDOUT, kind=kind, baseline=baseline, candidate=candidate)


def built(target: str, *kernels: KernelUse) -> TargetBuild:
    """A build of two libraries; its one kernel, unless others are given, neither spills nor fills the device."""
    uses = kernels or (KernelUse("gelu_kernel", 40, 2048, 0, 24, 0.5),)
    return TargetBuild(target, BuildOutcome.BUILT, seconds=1.25, builds=2, asked=2, kernels=uses)


def refused(target: str, detail: str = "error: no such instruction") -> TargetBuild:
    return TargetBuild(target, BuildOutcome.FAILED, detail, seconds=0.5, builds=0, asked=2)


def unchecked(target: str) -> TargetBuild:
    return TargetBuild(target, BuildOutcome.NOT_CHECKED, "no compiler for it here", asked=2)


def trial(
    task: str = "triton2triton/norm/rms",
    status: Status = Status.PASSED,
    cases: Sequence[CaseResult] = (),
    *,
    agent: str = "alpha",
    attempt: int = 1,
    run: str = "r1",
    env: Environment | None = None,
    task_hash: str = "t0",
    detail: str = "",
    targets: Sequence[TargetBuild] = (),
) -> Trial:
    """One trial whose verdicts follow from its status: the gate that fails is the one the status belongs to."""
    env = env or environment()
    task_type = task.split("/", 1)[0]
    evaluation = None
    if status not in (Status.HARNESS_ERROR, Status.NOTHING_SUBMITTED):
        verdicts = verdicts_of(status, detail)
        evaluation = Evaluation(task, task_type, task_hash, "c0", env, verdicts, tuple(cases), targets=tuple(targets))
    return Trial(
        run, task, task_type, task_hash, agent, attempt, status, env, "2025-06-01T12:00:00Z", 12.5, detail, evaluation
    )


def verdicts_of(status: Status, detail: str = "") -> tuple[Verdict, ...]:
    failing = None if status is Status.PASSED else STAGE_OF.get(status, Stage.CORRECTNESS)
    verdicts: list[Verdict] = []
    for stage in GATES:
        if stage is failing:
            return (*verdicts, Verdict(stage, status, detail))
        verdicts.append(Verdict(stage, Status.PASSED))
    return tuple(verdicts)


def run(
    trials: Sequence[Trial] = (),
    *,
    tasks: Sequence[str] | None = None,
    agents: Sequence[str] | None = None,
    attempts: int = 1,
    name: str = "r1",
    env: Environment | None = None,
    config: str = "configs/demo.yaml",
) -> RunRecords:
    """A run of the given trials; tasks and agents default to those that occur."""
    env = env or (trials[0].environment if trials else environment())
    info = RunInfo(
        name,
        "2025-06-01T12:00:00Z",
        env,
        tuple(agents if agents is not None else dict.fromkeys(t.agent for t in trials)),
        tuple(tasks if tasks is not None else dict.fromkeys(t.task for t in trials)),
        attempts,
        config,
        "0.1.0",
    )
    return RunRecords(Path("runs") / name, info, tuple(trials))


def simple(
    speedups: Sequence[float | None], *, agent: str = "alpha", name: str = "r1", env: Environment | None = None
) -> RunRecords:
    """One task per entry: passed with that speedup on two seen cases and two held-out ones; None: a wrong result."""
    trials = []
    for place, speedup in enumerate(speedups):
        task = f"triton2triton/norm/t{place:02d}"
        if speedup is None:
            cases = [case(candidate=Status.WRONG_RESULT), case("s2", candidate=Status.NOT_RUN)]
            trials.append(trial(task, Status.WRONG_RESULT, cases, agent=agent, run=name, env=env))
        else:
            cases = [case("s1", speedup), case("s2", speedup), heldout("h1", speedup), heldout("h2", speedup)]
            trials.append(trial(task, Status.PASSED, cases, agent=agent, run=name, env=env))
    return run(trials, name=name, env=env)


def evaluated(number: int, speedup: float | None = 1.5, at_s: float = 60.0) -> Evaluated:
    status = Status.WRONG_RESULT if speedup is None else Status.PASSED
    return Evaluated(number, at_s * number, 4.0, status, speedup, f"hash{number}")


def session(*evaluations: Evaluated, ending: Ending = Ending.FINISHED, flags: Sequence[Flag] = ()) -> Session:
    """A session of ten minutes, with 48,000 tokens in and 1,500 out for half a dollar."""
    return Session(
        "claude_code",
        "2.1.197",
        ending,
        "",
        600.0,
        30.0,
        "bubblewrap+network=allow-list",
        "model-x",
        evaluations,
        2,
        Tokens(48_000, 1_500, 4_000),
        0.5,
        17,
        tuple(flags),
    )
