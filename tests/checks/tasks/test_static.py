"""What can be seen of a task without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.checks.tasks.static import find_duplicates, static_items
from arena.results.check import CheckItem, CheckOutcome
from arena.task.corpus.task_folder import load_task
from tests.task.corpus.folders import HELDOUT, SEEN, TASK, write_task


def items(folder: Path, duplicates: dict[str, str] | None = None) -> dict[str, CheckItem]:
    return {item.name: item for item in static_items(load_task(folder), duplicates or {})}


def test_few_kinds_are_refused(tmp_path: Path) -> None:
    heldout = HELDOUT.replace("kind: dtype", "kind: edge").replace("kind: structure", "kind: edge")
    found = items(write_task(tmp_path, heldout=heldout))["kinds"]
    assert found.outcome is CheckOutcome.FAILED and "3 kinds (alignment, edge, scale_up)" in found.detail


def test_a_task_says_which_two_to_five_cases_are_timed(tmp_path: Path) -> None:
    found = items(write_task(tmp_path, seen=SEEN.replace(", omit: [bias], timed: true", ", omit: [bias]")))[
        "timed cases"
    ]
    assert found.outcome is CheckOutcome.FAILED and "1 seen cases say `timed: true`" in found.detail


def test_a_pinned_axis_is_refused(tmp_path: Path) -> None:
    heldout = HELDOUT.replace("D: 128", "D: 64, flag: true")
    found = items(write_task(tmp_path, heldout=heldout))["axes vary"]
    assert found.outcome is CheckOutcome.FAILED and "axis D is 64 in every case" in found.detail


def test_a_pinned_scalar_is_refused(tmp_path: Path) -> None:
    found = items(write_task(tmp_path, seen=SEEN.replace(", alpha: 1e-2", "")))["axes vary"]
    assert found.outcome is CheckOutcome.FAILED and "scalar alpha is 0.5 in every case" in found.detail


def test_an_exception_needs_a_reason_and_is_shown(tmp_path: Path) -> None:
    text = f"{TASK}exceptions: {{axes vary: the head size of one model}}\n"
    found = items(write_task(tmp_path, task=text, heldout=HELDOUT.replace("D: 128", "D: 64, flag: true")))["axes vary"]
    assert (found.outcome, found.detail) == (CheckOutcome.DECLARED, "the head size of one model")


def test_cases_that_are_all_large_are_refused(tmp_path: Path) -> None:
    seen = "".join(f"- {{M: {4096 - i}, N: 4096, D: 64, dtype: float32, alpha: 0.{i + 1}}}\n" for i in range(5))
    found = items(write_task(tmp_path, seen=seen))["small cases"]
    assert found.outcome is CheckOutcome.FAILED and found.detail.startswith("0 seen cases are small enough")


def test_a_good_task_passes(tmp_path: Path) -> None:
    found = items(write_task(tmp_path))
    strict = {name for name, item in found.items() if item.outcome is not CheckOutcome.PASSED}
    assert strict == {"held-out cases", "production case", "values case", "CPU reach of M", "tiles of M"}
    assert all(found[name].outcome is CheckOutcome.NOT_CHECKED for name in strict)
    assert all(found[name].detail.startswith("would fail at level strict: ") for name in strict)
    assert found["schema"].detail.endswith("rules of level own")


STRUCTURE = "M: 8, N: 64, D: 64, dtype: float16, flag: true, timed: true"
BROKEN = {
    "held-out cases": ("heldout", HELDOUT),
    "held-out kinds": ("heldout", HELDOUT.replace("kind: dtype", "kind: edge")),
    "production case": ("heldout", HELDOUT),
    "scale_up case": ("heldout", HELDOUT.replace("scale_up", "scale_down")),
    "reach of N": ("task", TASK.replace("[8, 4096]", "[8, 8192]")),
    "CPU reach of M": ("heldout", HELDOUT),
    "tiles of M": ("heldout", HELDOUT),
    "sizes of D": ("task", TASK.replace("[64, 128]", "[64, 128, 256]")),
    "long structural case": ("heldout", HELDOUT.replace(STRUCTURE, "M: 4, N: 8, D: 64, dtype: float16")),
    "values case": ("heldout", HELDOUT),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_strict_corpus_is_held_to_more(tmp_path: Path, name: str) -> None:
    stem, text = BROKEN[name]
    own = items(write_task(tmp_path, **{stem: text}))[name]
    (tmp_path / "corpus.yaml").write_text("rules: strict\n", encoding="utf-8")
    strict = items(tmp_path / "triton2triton/suite/scale")[name]
    assert (own.outcome, strict.outcome) == (CheckOutcome.NOT_CHECKED, CheckOutcome.FAILED)
    assert own.detail == f"would fail at level strict: {strict.detail}"


@pytest.mark.parametrize(("rows", "outcome"), [(256, CheckOutcome.NOT_CHECKED), (257, CheckOutcome.PASSED)])
def test_the_cpu_platform_meets_more_than_a_small_buffer_holds(
    tmp_path: Path, rows: int, outcome: CheckOutcome
) -> None:
    long = f"- {{kind: asymmetric, M: {rows}, N: 40, D: 64, dtype: float32}}\n"
    assert items(write_task(tmp_path, heldout=HELDOUT + long))["CPU reach of M"].outcome is outcome


@pytest.mark.parametrize(("rows", "outcome"), [(63, CheckOutcome.NOT_CHECKED), (64, CheckOutcome.PASSED)])
def test_of_a_short_domain_the_cpu_platform_meets_the_end(tmp_path: Path, rows: int, outcome: CheckOutcome) -> None:
    task = TASK.replace("[1, 4096]}", "[1, 64]}", 1)
    seen, heldout = SEEN.replace("M: 64", f"M: {rows}"), HELDOUT.replace("M: 4096", f"M: {rows}")
    assert items(write_task(tmp_path, task=task, seen=seen, heldout=heldout))["CPU reach of M"].outcome is outcome


@pytest.mark.parametrize(
    ("rows", "outcome"),
    [
        ((96,), CheckOutcome.NOT_CHECKED),
        ((96, 128), CheckOutcome.NOT_CHECKED),
        ((96, 64), CheckOutcome.PASSED),
        ((160, 192), CheckOutcome.PASSED),
    ],
)
def test_the_cpu_platform_meets_tiles_that_are_half_full(
    tmp_path: Path, rows: tuple[int, ...], outcome: CheckOutcome
) -> None:
    seen, heldout = SEEN.replace("M: 64", "M: 33"), HELDOUT.replace("M: 64", "M: 33")
    heldout += "".join(f"- {{kind: alignment, M: {size}, N: 24, D: 64, dtype: float32}}\n" for size in rows)
    assert items(write_task(tmp_path, seen=seen, heldout=heldout))["tiles of M"].outcome is outcome


def test_a_domain_without_half_tiles_needs_no_case(tmp_path: Path) -> None:
    task = TASK.replace("[1, 4096]}", "[1, 31]}", 1)
    seen, heldout = SEEN.replace("M: 64", "M: 30"), HELDOUT.replace("M: 4096", "M: 31").replace("M: 64", "M: 29")
    found = items(write_task(tmp_path, task=task, seen=seen, heldout=heldout))["tiles of M"]
    assert found.outcome is CheckOutcome.PASSED


def test_an_exception_from_a_strict_rule_holds_at_both_levels(tmp_path: Path) -> None:
    text = f"{TASK}exceptions: {{production case: no model has one}}\n"
    assert items(write_task(tmp_path, task=text))["production case"].outcome is CheckOutcome.DECLARED
    (tmp_path / "corpus.yaml").write_text("rules: strict\n", encoding="utf-8")
    assert items(tmp_path / "triton2triton/suite/scale")["production case"].outcome is CheckOutcome.DECLARED


@pytest.mark.parametrize("name", ["axes vary", "scale_up case", "reach of M"])
def test_no_exception_outlives_its_reason(tmp_path: Path, name: str) -> None:
    found = items(write_task(tmp_path, task=f"{TASK}exceptions: {{{name}: it was once so}}\n"))["exceptions"]
    assert found.outcome is CheckOutcome.FAILED
    assert found.detail.startswith(f"'{name}' under `exceptions` of task.yaml, but the task keeps the rule")


def test_a_task_under_another_name_is_found(tmp_path: Path) -> None:
    first = write_task(tmp_path, "triton2triton/suite/scale")
    other = write_task(tmp_path, "triton2triton/suite/rescale", task=TASK.replace("name: scale", "name: rescale"))
    (other / "reference.py").write_text(
        '"""Another text."""\n\ndef reference(x, alpha):\n    """Scales."""\n    return x * alpha\n', encoding="utf-8"
    )
    corpus = {task.id: task for task in map(load_task, (first, other))}
    duplicates = find_duplicates(corpus)
    assert duplicates == {"triton2triton/suite/rescale": "triton2triton/suite/scale"}
    assert items(other, duplicates)["unlike others"].outcome is CheckOutcome.FAILED


def test_different_tasks_are_no_twins(tmp_path: Path) -> None:
    first = write_task(tmp_path, "triton2triton/suite/scale")
    other = write_task(tmp_path, "triton2triton/suite/rescale", task=TASK.replace("name: scale", "name: rescale"))
    (other / "reference.py").write_text("def reference(x, alpha):\n    return x / alpha\n", encoding="utf-8")
    (other / "kernel.py").write_text("def scale(x, bias, alpha, flag, y):\n    y.copy_(x)\n", encoding="utf-8")
    assert find_duplicates({task.id: task for task in map(load_task, (first, other))}) == {}
