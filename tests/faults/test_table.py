"""The table of `docs/develop/faults.md` and the tests say the same."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import arena

HERE = Path(__file__).parent
PAGE = Path(arena.__file__).parents[1] / "docs" / "develop" / "faults.md"
ELSEWHERE = {"test_killed_and_resumed": HERE.parent / "agents" / "test_resume.py"}


def rows() -> dict[str, str]:
    """The cell of each test named in the table's last column, by the test's name."""
    cells = [line.rsplit("|", 2)[1] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    found = [(name, cell) for cell in cells for name in re.findall(r"`(test_\w+)`", cell)]
    assert len(found) == len(dict(found)) == len(cells) - 2, "one test in each row, and none twice"
    return dict(found)


def functions_of(path: Path) -> dict[str, bool]:
    """The tests of a file, and whether each needs a GPU."""
    functions = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)]
    return {
        node.name: any(ast.unparse(mark) == "pytest.mark.gpu" for mark in node.decorator_list)
        for node in functions
        if node.name.startswith("test_")
    }


def test_every_fault_has_a_row_and_every_row_a_test() -> None:
    here: dict[str, bool] = {}
    for path in HERE.glob("test_*.py"):
        if path.name != Path(__file__).name:
            here |= functions_of(path)
    elsewhere = {name: functions_of(path)[name] for name, path in ELSEWHERE.items()}
    table = rows()
    assert set(table) == set(here) | set(elsewhere)
    assert {name for name, cell in table.items() if "(GPU)" in cell} == {name for name, gpu in here.items() if gpu}
