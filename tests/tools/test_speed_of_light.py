"""Shares of the bound: which timings hold, which published kernel counts, and what the page and the figure show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from arena.integrations.yardstick.table import COLUMNS
from arena.reports.task_versions import version_of
from arena.results.record import CaseResult, CaseTiming, Estimate, Mode, Split, Trial
from arena.results.verdict import Stage, Status, Verdict
from arena.task.corpus.task_folder import TASKS, load_task
from tests.tools import ROOT, load

tool = load("figures.speed_of_light")
TASK = load_task(TASKS / "triton2triton/fundamentals/subtract")
TIMED = [case for case in TASK.seen if case.timed]
SHAPE = TIMED[-1].label
AS_BASELINE = [1.0 + number for number in range(len(TIMED))]


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    return load("figures.tables")


@pytest.fixture(scope="module")
def trial(tables: ModuleType) -> Trial:
    """A kept trial of the task, as one of its present version."""
    kept: Sequence[Trial] = tables.kept.run(tables.kept.FULL).trials
    return replace(next(one for one in kept if one.task == TASK.id), task_hash=TASK.content_hash)


def timing(latency_ms: float, baseline_ms: float = 1.0, width: float = 0.0) -> CaseTiming:
    latency = Estimate(latency_ms, latency_ms * (1 - width), latency_ms * (1 + width))
    speedup = baseline_ms / latency_ms
    interval = Estimate(speedup, speedup * (1 - width), speedup * (1 + width))
    baseline = Estimate(baseline_ms, baseline_ms, baseline_ms)
    return CaseTiming(baseline, latency, interval, Mode.GRAPH, 1, 8, "", ())


def trial_of(trial: Trial, agent: str, latencies_ms: Sequence[float], heldout: Status = Status.PASSED) -> Trial:
    """Return a trial that is right on the timed seen cases, in order, and on one held-out case or not."""
    assert trial.evaluation is not None
    cases = tuple(
        CaseResult(case.id, Split.SEEN, "", case.label, Status.PASSED, Status.PASSED, timing=timing(latency, 1.0 + n))
        for n, (case, latency) in enumerate(zip(TIMED, latencies_ms, strict=False))
    )
    other = CaseResult("heldout-01", Split.HELDOUT, "", "another", Status.PASSED, heldout)
    verdicts = (Verdict(Stage.CORRECTNESS, Status.PASSED), Verdict(Stage.HELDOUT, heldout))
    evaluation = replace(trial.evaluation, cases=(*cases, other), verdicts=verdicts, unchanged=False)
    return replace(trial, agent=agent, status=Status.PASSED, evaluation=evaluation)


def measured(tables: ModuleType, *trials: Trial, **given: object) -> Any:
    facts = tables.kept.run(tables.kept.FULL).info.environment.device
    (one,) = tool.gathered([TASK], facts, {}, trials, **given)
    return one


def engine(shape: str, status: str = "passed", latency: str = "0.5") -> dict[str, str]:
    figures = {"candidate_ms": latency, "baseline_ms": "1", "speedup": "2", "speedup_low": "1.9", "speedup_high": "2.1"}
    return dict.fromkeys(COLUMNS, "") | {"task": TASK.id, "engine": "vllm", "shape": shape, "status": status} | figures


def test_a_share_is_that_of_the_record(tables: ModuleType) -> None:
    """The page on the quality of the tasks has the same bound and the same share of each of these timings."""
    (group,) = [one for one in tables.speed_of_light_groups() if one.name == "tasks"]
    kept = {row.task.id: row.timings.get("expert", ()) for row in tables.quality()}
    compared = 0
    for one in group.tasks:
        if "expert" in one.kernels:
            latency = one.kernels["expert"].latency_ms
            timing = next(each for each in kept[one.task] if each.candidate_ms == latency)
            share = one.share("expert")
            assert share.low <= share.value <= share.high
            assert one.bound_ms == pytest.approx(max(timing.roofline_ms, tool.suites.LAUNCH_MS))
            assert one.limit == "launch" or share.value == pytest.approx(timing.roofline_fraction)
            compared += 1
    assert compared > len(group.tasks) / 2


def test_the_case_is_the_one_on_which_the_baseline_takes_longest(tables: ModuleType, trial: Trial) -> None:
    one = measured(tables, trial_of(trial, "noop", [9.0] * len(TIMED)), trial_of(trial, "expert", [0.5] * len(TIMED)))
    assert one.case == TIMED[-1].id
    assert one.beaten("baseline") == ["expert"]


def test_only_a_kernel_that_is_right_on_every_case_is_the_best(tables: ModuleType, trial: Trial) -> None:
    slow, fast = ([latency] * len(TIMED) for latency in (0.8, 0.2))
    overfit = trial_of(trial, "overfit", fast, heldout=Status.WRONG_RESULT)
    right = [trial_of(trial, name, latencies) for name, latencies in (("slow", slow), ("slower", [0.9] * len(TIMED)))]
    published = tool.Published([overfit, *right], {right[0].key: "slow/01_problem/1"})
    one = measured(tables, published=published)
    assert one.kernels["published agent"].name == "slow/01_problem/1"
    alone = measured(tables, published=tool.Published([overfit]))
    assert set(alone.kernels) == {"baseline"}, "the baseline was timed, and no kernel counts"


def test_a_record_of_another_version_counts_only_where_its_version_is_known(tables: ModuleType, trial: Trial) -> None:
    old = replace(trial_of(trial, "noop", [1.0] * len(TIMED)), task_hash="0" * 64)
    void = measured(tables, old, engines=[engine(SHAPE)])
    assert not void.kernels
    facts = tables.kept.run(tables.kept.FULL).info.environment.device
    (held,) = tool.gathered([TASK], facts, {old.task_hash: version_of(TASK)}, [old])
    assert set(held.kernels) == {"baseline"}


def test_an_engine_counts_where_it_passed_on_the_same_shape() -> None:
    rows = [
        engine(SHAPE, "wrong_result", "0.1"),
        engine("another", latency="0.1"),
        engine(SHAPE),
        engine(SHAPE, latency="0.6"),
    ]
    assert tool.fastest_engine(TASK.id, SHAPE, rows).latency_ms.value == 0.5
    assert tool.fastest_engine(TASK.id, SHAPE, rows[:2]) is None


def test_intervals_that_overlap_beat_nothing() -> None:
    wide, narrow = (tool.Kernel(timing(one).candidate_ms, timing(one, width=width).speedup, "")
                    for one, width in ((0.5, 0.3), (0.45, 0.01)))  # fmt: skip
    assert not narrow.beats(wide)
    assert tool.Kernel(wide.latency_ms, timing(0.2).speedup, "").beats(wide)


def test_a_missing_kernel_is_a_dash_and_counts_nowhere(tables: ModuleType, trial: Trial) -> None:
    one = measured(tables, trial_of(trial, "noop", AS_BASELINE), engines=[engine(SHAPE)])
    empty = tool.Measured("triton2triton/gemm/none", "seen-01", "memory", 0.01)
    facts = tables.kept.run(tables.kept.FULL).info.environment.device
    groups = [tool.Group("all", [one, empty]), tool.Group("some", [one, empty], whole=False)]
    text = tool.page(groups, facts, [])
    assert "| triton2triton/gemm/none | seen-01 | 10 | bytes | – | – | – | – | – | – | – |" in text
    assert text.count("| triton2triton/gemm/none |") == 1
    assert "No expert and no engine's kernel holds for 1 tasks:\ntriton2triton/gemm/none." in text
    assert "- The engine beats the baseline in 2 of 2 tasks that have both." in text
    drawn = tool.drawing(groups).svg()
    assert ">none<" not in drawn
    assert drawn.count(">subtract<") == 2


def test_the_experts_served_speedup_has_the_weights_of_the_task_as_it_is(trial: Trial) -> None:
    """The record was written before the task had any; the last case is 3 calls of 2 ms, the first 4 of 1 ms."""
    calls = {TIMED[0].id: 4, TIMED[1].id: 3}
    task = replace(TASK, seen=tuple(replace(case, calls=calls.get(case.id, 0)) for case in TASK.seen))
    expert = trial_of(trial, "expert", [0.5, 0.5, *AS_BASELINE[2:]])
    served = tool.served_by_expert(task, {}, [expert])
    assert served.value == pytest.approx((4 * 1 + 3 * 2) / (4 * 0.5 + 3 * 0.5))
    assert tool.served_by_expert(task, {}, [trial_of(trial, "expert", [0.5])]) is None
    assert tool.served_by_expert(TASK, {}, [expert]) is None


def test_the_kept_figure_and_versions_are_those_of_the_records(tables: ModuleType) -> None:
    made = tool.drawing(tables.speed_of_light_groups()).svg()
    assert (ROOT / tool.DRAWING).read_text(encoding="utf-8") == made, "run `python tools/claims.py`"
    assert tables.PUBLISHED_VERSIONS.read_bytes() == tables.published_versions()
