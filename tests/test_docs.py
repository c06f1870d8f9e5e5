"""What the pages name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_NAMED = re.compile(r"`((?:tests|docs|tools|configs|arena)/[\w./-]+?)(?:::\w+)?`")


@pytest.mark.parametrize("page", ["threat-model.md", "attacking.md", "isolation.md"])
def test_every_file_that_a_page_names_exists(page: str) -> None:
    names = _NAMED.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert names
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_every_wall_of_the_threat_model_has_a_test() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    table = text.split("## Walls")[1].split("##")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    assert rows
    assert [row for row in rows if "`tests/" not in row.rsplit(" | ", 1)[1]] == []
