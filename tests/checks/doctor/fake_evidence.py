"""Evidence that was made up: of a good machine, to be changed in one place by a test."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from arena.checks.doctor import candidates as c
from arena.checks.doctor.evidence import CrossSeen, DeviceSeen, ExchangeSeen, MemorySeen, ProbeSeen, VendorBuilds
from arena.errors import InfrastructureError
from arena.judge.workers.late_work import DELAYS
from arena.platforms.base import Memory
from arena.platforms.rocm.hip_launch import LaunchSeen
from arena.results.environment import DeviceFacts, Environment
from arena.results.portability import BuildOutcome, TargetBuild
from arena.results.record import CaseResult, CaseTiming, Estimate, Evaluation, Mode, Round, Split
from arena.results.verdict import Stage, Status, Verdict

GIB, MIB = 1 << 30, 1 << 20
MI300X = DeviceFacts("rocm", "amd", "gfx942", "AMD Instinct MI300X", 64, 192 * GIB, 256 * MIB, peak_source="data sheet")
RADEON = DeviceFacts("rocm", "amd", "gfx1100", "AMD Radeon RX 7900 XTX", 32, 24 * GIB, 96 * MIB)
H200 = DeviceFacts("cuda", "nvidia", "sm_90", "NVIDIA H200", 32, 140 * GIB, 60 * MIB)
CPU = DeviceFacts("cpu", "cpu", "cpu", "a processor", 32, 16 * GIB, 0)


def device(facts: DeviceFacts = MI300X, **changed: object) -> DeviceSeen:
    """A device whose memory is half free."""
    memory = Memory(facts.memory_bytes // 2, facts.memory_bytes)
    seen = DeviceSeen(facts, 304, memory, asked_hip=facts.name, hip_devices=1)
    return replace(seen, **changed)  # type: ignore[arg-type]


def probe(facts: DeviceFacts = MI300X, **changed: object) -> ProbeSeen:
    """A probe that saw everything, and nothing wrong."""
    seen = ProbeSeen(
        device=device(facts),
        compiled_s=0.5,
        launched=LaunchSeen("", 8, (facts.wave_size, *range(2, 4097))),
        exchange=ExchangeSeen(facts.wave_size, 4095, 0, "session+network+mount"),
        memory=MemorySeen(256 * MIB, 10 * GIB, 10 * GIB + 256 * MIB, 10 * GIB),
    )
    return replace(seen, **changed)  # type: ignore[arg-type]


def timing(
    ms: float,
    *,
    speedup: float = 1.0,
    width: float = 0.0,
    worker_ms: float | None = None,
    mode: Mode = Mode.GRAPH,
) -> CaseTiming:
    """Ten calls a pass; the worker's clock agrees unless it is told otherwise. `width`: half of the interval."""
    worker_s = (ms if worker_ms is None else worker_ms) * 10 / 1e3
    calls = tuple(Round(0.001, 0.001, 0.01, 0.01, worker_s) for _ in range(4))
    exact = Estimate(ms, ms, ms)
    return CaseTiming(exact, exact, Estimate(speedup, speedup - width, speedup + width), mode, 1, 10, "evicted", calls)


def evaluation(
    status: Status = Status.PASSED,
    *,
    facts: DeviceFacts = MI300X,
    timings: tuple[CaseTiming, ...] = (timing(0.02), timing(0.2)),
    detail: str = "",
) -> Evaluation:
    """One case for each timing; none is timed where the candidate did not pass."""
    timed = timings if status is Status.PASSED else (None,) * len(timings)
    cases = tuple(
        CaseResult(str(index), Split.SEEN, "", f"N={index}", Status.PASSED, status, timing=each)
        for index, each in enumerate(timed)
    )
    verdict = Verdict(Stage.CORRECTNESS, status, detail)
    return Evaluation(
        "task", "hip2hip", "", "", Environment(facts, "session"), (verdict,), cases, seconds={"build": 1.0}
    )


def built(target: str) -> TargetBuild:
    return TargetBuild(target, BuildOutcome.BUILT, "", 0.5, 1, 1)


def refused(target: str, detail: str) -> TargetBuild:
    return TargetBuild(target, BuildOutcome.FAILED, detail, 0.5, 0, 1)


@dataclass
class FakeEvidence:
    """Implements `arena.checks.doctor.evidence.Evidence`; a candidate that is not listed has no verdict."""

    seen: ProbeSeen
    level: str = "session+network+mount"
    left: str = DELAYS
    evaluations: dict[str, Evaluation] = field(default_factory=dict)
    builds: CrossSeen = field(default_factory=CrossSeen)

    def probe(self) -> ProbeSeen:
        return self.seen

    def cross_compilation(self) -> CrossSeen:
        return self.builds

    def isolation(self) -> str:
        return self.level

    def late_work(self) -> str:
        return self.left

    def evaluation(self, candidate: str) -> Evaluation:
        if candidate not in self.evaluations:
            raise InfrastructureError("the judge ended (exit code -11)")
        return self.evaluations[candidate]


def good_machine(facts: DeviceFacts) -> FakeEvidence:
    """Where every item passes."""
    lanes = Status.PASSED if facts.wave_size == 32 else Status.WRONG_RESULT
    mode = Mode.LOOP if facts.emulated else Mode.STREAM
    evaluations = {
        c.START_HIP: evaluation(facts=facts),
        c.START_TRITON: evaluation(facts=facts),
        c.WRONG: evaluation(Status.WRONG_RESULT, facts=facts),
        c.PAST_THE_END: evaluation(Status.OUT_OF_BOUNDS, facts=facts),
        c.ASSUMES_32: evaluation(Status.WAVE_SIZE_DEPENDENT if facts.emulated else lanes, facts=facts),
        c.WAITS: evaluation(facts=facts, timings=(timing(0.05, mode=mode),)),
    }
    vendors = tuple(
        VendorBuilds(language, vendor, builds=(built("gfx942" if vendor == "amd" else "sm_90"),))
        for language in ("hip", "triton")
        for vendor in ("amd", "nvidia")
    )
    return FakeEvidence(probe(facts), evaluations=evaluations, builds=CrossSeen(vendors))
