"""The largest evaluation that there can be fits a frame, and text in it is harmless."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from arena.judge.performance import stage as performance
from arena.judge.process.fitting import LOG_CHARACTERS, MOST_USES, fit
from arena.judge.process.messages import EvaluationAnswer, FromJudge
from arena.judge.workers.worker import DETAIL_CHARACTERS, CandidateFailed
from arena.platforms.toolchains.targets import TARGETS
from arena.processes.protocol import MOST_KERNELS
from arena.processes.wire import MAX_FRAME_BYTES
from arena.results.portability import BuildOutcome, KernelUse, TargetBuild
from arena.results.profile import KernelTime, Profile
from arena.results.record import CaseResult, CaseTiming, Estimate, Evaluation, Mode, Round, Split
from arena.results.verdict import Stage, Status, Verdict
from tests.fakes import HERE
from tests.shipped import shipped_tasks

LONG = "\N{SLIGHTLY SMILING FACE}\x1b[31m\N{COMBINING ACUTE ACCENT}" * 300_000
ONE = Estimate(1 / 3, 1 / 7, 2 / 3)
ROUND = Round(*(1e-5 / 3,) * 7, swapped=True)


def largest() -> Evaluation:
    """Every list as long as it can be, every text longer than it may be."""
    cases = max(len(task.seen) + len(task.heldout) for task in shipped_tasks().values())
    label = max(len(case.label) for task in shipped_tasks().values() for case in (*task.seen, *task.heldout))
    timing = CaseTiming(
        ONE, ONE, ONE, Mode.GRAPH, 10**6, 10**6, "distinct sets", (ROUND,) * performance._MOST_ROUNDS, doubted=LONG
    )
    case = CaseResult(
        "c" * 40, Split.SEEN, "k" * 40, "l" * label, Status.PASSED, Status.TIMING_MISMATCH, LONG, 0.1, timing
    )
    uses = tuple(KernelUse(f"{n}{LONG}", 255, 10**6, 10**6, 10**6, 1 / 3) for n in range(MOST_KERNELS))
    times = tuple(KernelTime(LONG, 10**9, 1e9 / 3, (10**9,) * 3, (1024,) * 3) for _ in range(50))
    targets = tuple(TargetBuild(target, BuildOutcome.FAILED, LONG, 1 / 3, 1, 10**6, uses) for target in TARGETS)
    return Evaluation(
        task="t",
        task_type="hip2hip",
        task_hash="h",
        candidate_hash="c",
        environment=HERE,
        verdicts=tuple(Verdict(stage, Status.PASSED, LONG) for stage in Stage),
        cases=(case,) * cases,
        compile_log=LONG,
        targets=targets,
        profile=Profile("case", times, LONG, dict.fromkeys(TARGETS, uses)),
    )


@pytest.mark.slow
def test_the_largest_evaluation_fits_a_frame() -> None:
    fitted = fit(largest())
    data = msgspec.json.encode(EvaluationAnswer(fitted))
    assert MAX_FRAME_BYTES // 4 < len(data) < MAX_FRAME_BYTES
    assert b"\x1b" not in data and b"\\u001b" not in data
    decoder: msgspec.json.Decoder[FromJudge] = msgspec.json.Decoder(FromJudge)
    assert decoder.decode(data) == EvaluationAnswer(fitted)
    assert len(fitted.compile_log) == LOG_CHARACTERS and len(fitted.targets[0].kernels) == MOST_USES


@pytest.mark.slow
def test_an_ordinary_evaluation_stays_as_it_is() -> None:
    verdict = Verdict(Stage.COMPILE, Status.COMPILE_ERROR, "kernel.hip:3: error: no\n\t^")
    plain = replace(largest(), verdicts=(verdict,), cases=(), compile_log="warning: µ", targets=(), profile=None)
    assert fit(plain) == plain


def test_what_is_said_of_a_failed_candidate_is_cut_where_it_is_said() -> None:
    failure = CandidateFailed(Status.COMPILE_ERROR, LONG)
    assert len(failure.detail) == DETAIL_CHARACTERS and "\x1b" not in failure.detail
    assert len(str(failure)) < DETAIL_CHARACTERS + 40
