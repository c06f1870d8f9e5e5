"""`tools/README.md` lists every script of the folder; each says at its head what it does and how it is called."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from arena.checks.doctor import full
from tests.tools import ROOT

TOOLS = ROOT / "tools"
SCRIPTS = sorted([*TOOLS.glob("*.py"), *TOOLS.glob("*.sh")])
MOST = 15
NO_EXAMPLE = {"setup.sh"}
"""started by `make setup`"""


def test_the_table_lists_every_script_and_nothing_else() -> None:
    listed = re.findall(r"^\| `([\w.]+)` \| ", (TOOLS / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == [script.name for script in SCRIPTS]
    assert len(listed) <= MOST, "delete an experiment when it is over; git keeps it"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_script_says_what_it_does_and_how_it_is_called(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    head = (ast.get_docstring(ast.parse(text)) if script.suffix == ".py" else text.split("\nset -")[0]) or ""
    assert len(head.splitlines()) > 1
    assert script.name in NO_EXAMPLE or f"tools/{script.name}" in head


def test_only_packages_and_rules_lie_beside_the_scripts() -> None:
    known = {*SCRIPTS, TOOLS / "README.md", *(TOOLS / name for name in ("figures", "machine_code", "site", "vale"))}
    assert {path for path in TOOLS.iterdir() if path.name != "__pycache__"} == known


def test_the_scripts_that_the_doctor_starts_are_there() -> None:
    parts = {Path(part) for step in full.steps("cpu", "", Path("out")) for part in step.command}
    started = {part.name for part in parts if part.parent == TOOLS}
    assert started and started <= {script.name for script in SCRIPTS}
