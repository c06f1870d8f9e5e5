"""The comparison with production kernels: figures from rows, and the kept page from the kept table."""

from __future__ import annotations

import pytest

from arena.errors import UsageError
from arena.yardstick.table import COLUMNS, MEAN, read_table
from tests.tools import load

tool = load("production_table")
PAGE = tool.ROOT / "reports" / "tables" / "production.md"


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
    assert "2 of 3 measured tasks have a case that passed. In 1 the" in text
    assert "Geometric mean over tasks: 2.00." in text
    assert "| gemm/a | vllm  | 2 of 3 | 4.00 [4.00, 4.00] | 2.00 | 8.00 |" in text


def test_a_table_without_a_passed_case_is_refused() -> None:
    with pytest.raises(UsageError, match="arena yardstick"):
        tool.page(ROWS[-2:])


def test_the_kept_page_is_of_the_kept_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == tool.page(read_table(tool.MEASURED)) + "\n"
