"""The table by suite: figures from rows of cases, and which bounds a task does not keep."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from arena.errors import UsageError
from arena.integrations.yardstick.table import COLUMNS
from arena.results.environment import DeviceFacts
from arena.task.corpus.corpora import open_corpora
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import arguments
from tests.tools import load

tool = load("figures.suites")
SUBTRACT, SMALL = "triton2triton/fundamentals/subtract", "triton2triton/speculative_decoding/expand"
FACTS = DeviceFacts("cuda", "", "sm_90", "a GPU", 32, 0, 0, peak_bandwidth_gbs=1000.0, peak_tflops={"float32": 100.0})


def case(task: str, agent: str, number: int, speedup: float, baseline_ms: float, of_roofline: float) -> dict[str, str]:
    timed = [one.id for one in load_task(TASKS / task).seen if one.timed]
    figures = {"baseline_ms": baseline_ms, "candidate_ms": baseline_ms / speedup, "roofline_fraction": of_roofline}
    named = {"task": task, "agent": agent, "case": timed[number], "split": "seen", "speedup": speedup}
    return {name: str(value) for name, value in {**named, **figures}.items()}


def engine(task: str, speedup: float) -> dict[str, str]:
    given = {"task": task, "case": "seen-01", "speedup": str(speedup), "status": "passed"}
    return dict.fromkeys(COLUMNS, "") | given


def found(
    *rows: dict[str, str],
    engines: tuple[dict[str, str], ...] = (),
    reasons: Mapping[str, Mapping[str, str]] = {},
    copies: tuple[dict[str, str], ...] = (),
    direct: Mapping[tuple[str, str], float] = {},
) -> list[object]:
    load = lambda name: load_task(TASKS / name)  # noqa: E731
    return list(tool.measured(rows, engines, load, FACTS, reasons, tool.Streams(copies), direct))


def test_figures_are_means_over_cases_and_those_of_the_largest() -> None:
    rows = [
        case(SUBTRACT, "noop", 0, 1.0, 1.0, 0.5),
        case(SUBTRACT, "noop", 1, 1.0, 4.0, 0.25),
        case(SUBTRACT, "expert", 0, 2.0, 1.0, 0.9),
        case(SUBTRACT, "expert", 1, 0.5, 4.0, 0.7),
    ]
    one = found(*rows, engines=(engine(SUBTRACT, 2.0), engine(SUBTRACT, 8.0)))[0]
    assert isinstance(one, tool.Measured)
    assert one.bound == "memory"
    assert one.figures[:3] == pytest.approx((4.0, 1.0, 0.7))
    assert one.outside()[:3] == [
        ("engine", "engine 8.00 × baseline"),
        ("expert speedup", "expert 0.50 × baseline"),
        ("expert roofline", "expert at 0.70 of the roofline"),
    ]
    text = tool.page([one], "a GPU")
    assert "1 of 1 tasks are outside of a bound" in text
    assert f"{len(one.outside())} of {len(one.outside())} bounds that are not kept have no reason" in text
    assert "| triton2triton/fundamentals | 1 | 4.00, 4.00 (1) | 1.00, 1.00 (1) | 0.70, 0.70 (1) |" in text


def test_a_task_within_its_bounds_is_not_listed() -> None:
    rows = [case(SUBTRACT, "noop", 0, 1.0, 0.1, 0.6), case(SUBTRACT, "expert", 0, 1.5, 0.1, 0.9)]
    text = tool.page(found(*rows), "a GPU")
    assert "0 of 1 tasks are outside of a bound" in text
    assert f"| {SUBTRACT} |" not in text


def test_a_launch_bounds_what_moves_few_bytes() -> None:
    one = found(case(SMALL, "noop", 0, 1.0, 10 * tool.LAUNCH_MS, 0.001))[0]
    assert isinstance(one, tool.Measured)
    assert (one.bound, one.off) == ("launch", pytest.approx(10.0))
    assert one.outside() == [("expert speedup", "no expert was timed")]
    text = tool.page([one], "a GPU")
    assert "0 of 1 bounds that are not kept have no reason" in text
    assert f"| no expert was timed | {load_task(TASKS / SMALL).latency_bound} |" in text


def test_a_reason_stands_beside_the_bound_that_is_not_kept() -> None:
    rows = [case(SUBTRACT, "noop", 0, 1.0, 0.1, 0.6), case(SUBTRACT, "expert", 0, 1.5, 0.1, 0.3)]
    given = f"expert roofline: [{{reason: rows are too short, tasks: [{SUBTRACT}]}}]\nengine: []"
    reasons = tool.read_reasons(given)
    explained = found(*rows, reasons=reasons)
    assert tool.needless(explained, reasons) == []
    text = tool.page(explained, "a GPU")
    assert "0 of 1 bounds that are not kept have no reason" in text
    assert "| expert at 0.30 of the roofline | rows are too short |" in text


def test_a_reason_for_a_bound_that_is_kept_is_needless() -> None:
    rows = [case(SUBTRACT, "noop", 0, 1.0, 0.1, 0.6), case(SUBTRACT, "expert", 0, 1.5, 0.1, 0.9)]
    reasons = {SUBTRACT: {"expert roofline": "it is not"}, SMALL: {"engine": "was not measured here"}}
    assert tool.needless(found(*rows, reasons=reasons), reasons) == [(SUBTRACT, "expert roofline")]


@pytest.mark.parametrize("text", ["speed: []", "engine: [{reason: a, tasks: [x]}, {reason: b, tasks: [x]}]"])
def test_reasons_are_for_known_bounds_and_once_each(text: str) -> None:
    with pytest.raises(UsageError, match=r"unknown bound 'speed'|two for 'engine' of x"):
        tool.read_reasons(text)


def test_the_kept_reasons_are_for_tasks_that_there_are() -> None:
    reasons = tool.read_reasons(tool.REASONS.read_text(encoding="utf-8"))
    assert set(reasons) <= set(open_corpora(()).ids)


def test_an_engine_that_was_only_timed_counts_where_none_was_judged() -> None:
    row = case(SUBTRACT, "noop", 0, 1.0, 0.4, 0.6)
    shape = next(one.label for one in load_task(TASKS / SUBTRACT).seen if one.id == row["case"])
    given = {"task": SUBTRACT, "case": row["case"], "shape": shape, "status": "passed"}
    timed = [
        ("vllm", 0.3, "passed"),
        ("fla", 0.2, "passed"),
        ("sglang", 0.1, "wrong_result"),
        ("expert", 0.1, "passed"),
    ]
    lines = [json.dumps({**given, "label": label, "ms": ms, "status": status}) for label, ms, status in timed]
    lines.append(json.dumps({**given, "shape": "as it once was", "label": "fla", "ms": 0.01}))
    direct = tool.engine_times(lines)
    assert direct[SUBTRACT, shape] == 0.2
    (one,), (judged,) = found(row, direct=direct), found(row, engines=(engine(SUBTRACT, 1.2),), direct=direct)
    assert isinstance(one, tool.Measured) and isinstance(judged, tool.Measured)
    assert (one.engine, judged.engine) == ([2.0], [1.2])


@pytest.mark.parametrize(("reached", "explained"), [(0.3, False), (0.4, True)])
def test_a_copy_of_as_many_bytes_is_a_reason(reached: float, explained: bool) -> None:
    rows = [case(SUBTRACT, "noop", 0, 1.0, 0.1, 0.6), case(SUBTRACT, "expert", 0, 1.5, 0.1, reached)]
    copies = tuple({"kind": kind, "bytes": str(size), "gb_s": rate} for kind, size, rate in
                   [("copy", 1, "400"), ("copy", 1 << 40, "400"), ("read", 1, "900")])  # fmt: skip
    text = tool.page(found(*rows, copies=copies), "a GPU")
    assert ("reaches 0.40 |" in text) == explained
    assert f"{0 if explained else 1} of 1 bounds that are not kept have no reason" in text


def test_operations_limit_a_product_by_the_rates_of_the_roofline() -> None:
    """A float32 product may be three of bfloat16: at 900 TFLOP/s of those it has 300."""
    task = load_task(TASKS / "hip2hip/modules/simple_matmul")
    timed = [one for one in task.seen if one.timed and one.values["dtype"] == "float32"]
    facts = replace(FACTS, peak_bandwidth_gbs=1e6, peak_tflops={"float32": 100.0, "bfloat16": 900.0})
    limit, least_ms = tool.bound_of(task, timed[-1].id, facts)
    worked_out = arguments(task, timed[-1])
    assert (limit, least_ms) == ("arithmetic", pytest.approx(worked_out.flops / 300e9))


def test_hip_is_compared_with_the_faster_of_pytorch_and_its_compiler() -> None:
    name = "hip2hip/modules/silu"
    ms = {"kernel": 4.0, "expert": 2.0, "pytorch": 1.0, "torch_compile": 0.5}
    lines = [json.dumps({"task": name, "case": "seen-05", "label": label, "ms": one}) for label, one in ms.items()]
    lines += [json.dumps({"task": SUBTRACT, "case": "seen-05", "label": "pytorch", "ms": 1.0})]
    lines += [json.dumps({"task": name, "case": "seen-06", "label": "kernel", "ms": 1.0})]
    (row,) = tool.pytorch_rows(lines)
    assert (row["task"], row["case"], float(row["speedup"])) == (name, "seen-05", 8.0)
    one = found(case(name, "noop", 0, 1.0, 0.1, 0.9), engines=(row,))[0]
    assert isinstance(one, tool.Measured)
    assert one.figures[0] == pytest.approx(8.0)
    assert "engine" not in dict(one.outside()), "an engine bounds only kernels of engines"


def test_held_out_cases_that_an_expert_surely_loses_are_listed_the_worst_first() -> None:
    common = {"agent": "expert", "split": "heldout", "task": "triton2triton/gemm/bmm"}
    figures = [("M=1", "0.9", "0.95"), ("M=2", "0.99", "1.01"), ("M=3", "0.5", "0.6"), ("M=4", "2.0", "2.1")]
    rows = [common | {"shape": shape, "speedup": value, "speedup_high": high} for shape, value, high in figures]
    others = [rows[0] | {"agent": "noop"}, rows[0] | {"split": "seen"}, rows[0] | {"speedup": ""}]
    said = tool.heldout_page([*rows, *others]).splitlines()
    assert said[1] == "In 2 of 4 timed held-out cases the expert is slower than the baseline."
    assert said[5:] == ["| triton2triton/gemm/bmm | M=3 | 0.50 |", "| triton2triton/gemm/bmm | M=1 | 0.90 |"]
