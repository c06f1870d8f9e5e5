"""The comparison with production kernels: figures from rows."""

from __future__ import annotations

import pytest

from arena.errors import UsageError
from arena.integrations.yardstick.table import COLUMNS, MEAN
from tests.tools import load

tool = load("figures.production")


def row(task: str, case: str, speedup: str, status: str = "passed") -> dict[str, str]:
    given = {"task": task, "engine": "vllm", "case": case, "speedup": speedup, "status": status, "device": "a GPU"}
    return dict.fromkeys(COLUMNS, "") | given | {"speedup_low": speedup, "speedup_high": speedup}


ROWS = [
    row("triton2triton/gemm/a", "seen-01", "2.0"),
    row("triton2triton/gemm/a", "seen-02", "8.0"),
    row("triton2triton/gemm/a", "seen-03", "", "wrong_result"),
    row("triton2triton/gemm/a", MEAN, "4.0", "wrong_result"),
    row("triton2triton/gemm/b", MEAN, "1.0"),
    row("triton2triton/gemm/b", "seen-01", "1.0"),
    row("triton2triton/moe/c", "seen-01", "", "wrong_result"),
    row("triton2triton/moe/c", MEAN, "", "wrong_result"),
]


def test_a_suite_has_the_median_and_the_most_of_its_tasks() -> None:
    text = tool.page(ROWS)
    assert "| gemm | 2 | 2.50 | 4.00 | 1 |" in text
    assert "Of 3 engines' kernels 2 pass a timed case, and 3 of 5 timed cases are passed." in text
    assert "1 of the 2 is more than 1.5 times as fast as our baseline. In a single case 2 are." in text
    assert "Geometric mean over the 2 tasks: 2.00." in text
    assert "| gemm/a | vllm  | 2 of 3 | 4.00 [4.00, 4.00] | 2.00 | 8.00 |" in text


def test_a_table_without_a_passed_case_is_refused() -> None:
    with pytest.raises(UsageError, match="arena yardstick"):
        tool.page(ROWS[-2:])
