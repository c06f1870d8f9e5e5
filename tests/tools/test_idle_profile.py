"""`tools/idle_profile.py` says while which function of the judge a device had nothing to do."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from tests.tools import load


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", list(sys.path))  # it adds what lies beside it
    return load("idle_profile")


def test_kernels_that_overlap_are_one_span(tool: ModuleType) -> None:
    assert tool.union([(3.0, 4.0), (0.0, 1.0), (0.5, 2.0), (2.0, 2.5)]) == [(0.0, 2.5), (3.0, 4.0)]


def test_how_long_a_device_has_worked_by_some_time(tool: ModuleType) -> None:
    worked = tool.busy_before([(1.0, 2.0), (3.0, 5.0)])
    assert [worked(now) for now in (0.0, 1.5, 2.5, 4.0, 9.0)] == [0.0, 0.5, 1.0, 2.0, 3.0]


def test_what_is_left_belongs_to_the_innermost_function(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """`outer` is at work from 0 to 10 and calls `inner` from 2 to 6; kernels run from 1 to 3 and from 5 to 8."""
    timeline = tool.Timeline()
    timeline.spans = [("outer", 0.0, 2.0), ("inner", 2.0, 6.0), ("outer", 6.0, 10.0)]
    timeline.calls.update(outer=1, inner=1)
    tool.report(timeline, 10.0, [(1.0, 3.0), (5.0, 8.0)], 1)
    rows = {line.split()[7]: line.split() for line in capsys.readouterr().out.splitlines() if "%" in line}
    assert rows["outer"][:5] == ["6.00", "3.00", "0.00", "3.00", "30.0%"]
    assert rows["outer"][8:] == ["1.00", "0.00", "2.00"]
    assert rows["inner"][:5] == ["4.00", "2.00", "0.00", "2.00", "20.0%"]
    assert rows["inner"][8:] == ["0.00", "2.00", "0.00"]


def test_passes_are_no_idle_time(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    timeline = tool.Timeline()
    timeline.spans = [("Worker.timed Pass", 0.0, 1.0)]
    timeline.calls["Worker.timed Pass"] = 4
    timeline.passes_s["Worker.timed Pass"] = 0.75
    tool.report(timeline, 2.0, [], 1)
    assert "     0.25   12.5%       4    62.500  Worker.timed Pass" in capsys.readouterr().out
