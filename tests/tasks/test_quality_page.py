"""The page about the tasks lists every task, and no score below what is asked for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from arena.results.check import LEAST_REJECTED
from tests.shipped import shipped_tasks

PAGE = Path(__file__).parent.parent.parent / "reports" / "tables" / "task-quality.md"
ROW = re.compile(r"\| (\w+/\w+) \| \w{8} \| \d+ \| \d+ \| ([^|]*) \|")


@pytest.mark.slow
def test_every_task_is_on_the_page_with_a_score_that_is_high_enough() -> None:
    sections = re.split(r"^## (\w+) \(\d+\)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    rows = {
        f"{kind}/{name}": score
        for kind, body in zip(sections[1::2], sections[2::2], strict=True)
        for name, score in ROW.findall(body)
    }
    assert set(rows) == set(shipped_tasks()), (
        "run `arena tasks check --mutants --resume`, keep the checks, then run `python tools/claims.py`"
    )
    for task, score in rows.items():
        rejected, mutants = (int(number) for number in score.split(" of "))
        assert rejected / mutants >= LEAST_REJECTED, task
