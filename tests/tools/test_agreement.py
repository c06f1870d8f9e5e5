"""`tools/agreement.py` says for how many kernels two evaluations agree."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import arena
from arena.results.record import Estimate, Split
from tests import stored
from tests.fakes import HERE
from tests.tools import ROOT, load


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return load("agreement")


def compared(tool: ModuleType, task: str, api: dict[str, Estimate], client: dict[str, Estimate], *noisy: str) -> Any:
    one, two = tool.Measured("passed", 0.5, api, frozenset(noisy)), tool.Measured("passed", 1.5, client, frozenset())
    return tool.Compared(task, one, two)


def test_the_page_counts_kernels_and_cases_that_overlap(tool: ModuleType) -> None:
    low, middle, high = Estimate(1.0, 0.9, 1.1), Estimate(1.15, 1.05, 1.25), Estimate(2.0, 1.9, 2.1)
    found = [
        compared(tool, "a/b/agrees", {"x": low, "y": high}, {"x": middle, "y": high}, "y"),
        compared(tool, "a/b/differs", {"x": low, "only": low}, {"x": high}),
    ]
    assert [one.cases for one in found] == [("x", "y"), ("x",)] and [one.apart for one in found] == [(), ("x",)]
    page = tool.page(found, HERE, "abc1234")
    assert "overlap for **1 of 2 kernels**" in page and "overlap for 2 of 3, of which 1 were noisy" in page
    assert "| a/b/differs | 1.000 [0.900, 1.100] | 2.000 [1.900, 2.100] | **no** | 2.000 | x |" in page
    assert "`abc1234`" in page and "cores: 0.5 to 1.5." in page


def test_a_kernel_without_a_common_case_is_an_error(tool: ModuleType) -> None:
    with pytest.raises(ValueError, match="a/b/none: no case was timed twice"):
        _ = compared(tool, "a/b/none", {"x": Estimate(1, 1, 1)}, {}).means


def test_the_answer_of_the_server_has_what_the_record_has(tool: ModuleType, tmp_path: Any) -> None:
    """Case by case, for a stored evaluation: speedup, interval, and which are noisy."""
    one = stored.read()["noisy"]
    assert one.kernel is not None and one.evaluation is not None
    kernel = tmp_path / "kernel.py"
    kernel.write_text(one.kernel, encoding="utf-8")
    with stored.serving(tmp_path) as server, arena.Client(server.address, server.token) as client:
        found = tool.by_client(client, arena.load_task(stored.TASK), kernel)
    timed = [case for case in one.evaluation.split(Split.SEEN) if case.timing is not None]
    assert found.speedups == {case.case: case.speedup for case in timed}
    assert found.noisy == {case.case for case in timed if case.timing is not None and case.timing.noisy} != set()


def test_ten_tasks_with_an_expert_are_compared(tool: ModuleType) -> None:
    assert len(set(tool.TASKS)) == 10 and all(arena.load_task(name).expert for name in tool.TASKS)
