"""What the pages name is there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from arena.checks.tasks.mutation import cases_by_dtypes
from arena.runs.config import load_config
from arena.task.corpus.strict_yaml import SCHEMAS
from arena.task.corpus.task_folder import load_task
from arena.task.definition import MOST_HELD_BYTES, Tolerance
from arena.task.numerics.dtypes import bounds
from tests.task.corpus.folders import write_task

GUIDE = "contribute/new-task.md"
ROOT = Path(__file__).resolve().parents[1]
_NAMED = re.compile(r"`((?:tests|docs|tools|configs|arena)/[\w./-]+?)(?:::\w+)?`")


def test_every_file_that_a_page_names_exists() -> None:
    """Code, tests, tools and configurations; reports of runs exist only where the run was made.

    Decisions are dated: they may name a script that only git still has.
    """
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    named = [(page.name, name) for page in pages for name in _NAMED.findall(page.read_text(encoding="utf-8"))]
    assert len(named) > 50
    old = {path.name for path in (ROOT / "docs" / "decisions").glob("*.md")}
    named = [(page, name) for page, name in named if not (page in old and name.startswith("tools/"))]
    assert [pair for pair in named if not (ROOT / pair[1]).exists()] == []


_LINK = re.compile(r"\]\(([^)#\s:]*)(?:#([\w-]*))?\)")

_CODE = re.compile(r"^```.*?^```|^(?: {4}|\t).*?$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def _anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_link_of_a_page_leads_somewhere() -> None:
    """Links within fenced blocks are code; those with a scheme lead elsewhere."""
    broken = []
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "reports").glob("*.md")]
    for page in [*pages, *(ROOT / "reports" / "tables").glob("*.md")]:
        text = _CODE.sub("", page.read_text(encoding="utf-8"))
        for target, anchor in _LINK.findall(text):
            to = (page.parent / target) if target else page
            if not to.exists() or (anchor and anchor not in _anchors(to)):
                broken.append(f"{page.relative_to(ROOT)}: {target}#{anchor}")
    assert broken == []


def test_every_folder_that_the_page_on_reports_describes_exists() -> None:
    text = (ROOT / "reports" / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"^`([\w-]+)`", text, re.MULTILINE)
    assert "full-h200" in named and [name for name in named if not (ROOT / "reports" / name).is_dir()] == []


def test_every_defence_of_the_threat_model_has_a_test() -> None:
    text = (ROOT / "docs" / "develop" / "threat-model.md").read_text(encoding="utf-8")
    table = text.split("## Defences")[1].split("##")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    assert rows
    assert [row for row in rows if "`tests/" not in row.rsplit(" | ", 1)[1]] == []


def test_the_page_on_configurations_has_every_key_and_a_valid_example(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "evaluate" / "configuration.md").read_text(encoding="utf-8")
    schema = json.loads((SCHEMAS / "run.json").read_text(encoding="utf-8"))["properties"]
    keys = {*schema, *schema["agents"]["items"]["properties"]}
    assert {key for key in keys if f"| `{key}` |" not in page} == set()
    (tmp_path / "candidates").mkdir()
    (tmp_path / "configs").mkdir()
    example = tmp_path / "configs" / "monday.yaml"
    example.write_text(page.split("```yaml\n")[1].split("```")[0], encoding="utf-8")
    assert load_config(example).evaluation == {"seeds": 3, "targets": ("gfx942",)}


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    docs = ROOT / "docs"
    assert [page for path in docs.rglob("*.md") if (page := path.relative_to(docs).as_posix()) not in nav] == []


def test_the_authors_guide_has_the_default_tolerances_and_the_limit_on_sizes() -> None:
    page = (ROOT / "docs" / GUIDE).read_text(encoding="utf-8")
    for power, dtype in ((24, "float32"), (11, "float16"), (8, "bfloat16")):
        raised = str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
        assert f"2⁻{raised} for {dtype}" in page
        assert bounds(Tolerance(), dtype) == (2.0**-14, 2.0**-14 + 2 * 2.0**-power)
    assert "at least 2⁻¹⁴" in page
    assert f"at most {MOST_HELD_BYTES >> 30} GiB" in page


@pytest.mark.parametrize(("count", "chosen"), [(5, 5), (9, 9), (10, 6), (14, 8), (40, 6)])
def test_mutants_run_on_as_many_cases_as_the_authors_guide_says(tmp_path: Path, count: int, chosen: int) -> None:
    """Of float16 there are as many, and larger ones; the cheapest float32 case comes first, the largest last."""
    page = " ".join((ROOT / "docs" / GUIDE).read_text(encoding="utf-8").split())
    assert "on each of up to nine, else on six to eight from the cheapest to the most expensive" in page
    fine = "".join(f"- {{M: {m}, N: 8, D: 64, dtype: float32}}\n" for m in range(2, count + 2))
    task = load_task(write_task(tmp_path, seen=fine + fine.replace("float32", "float16").replace("N: 8", "N: 16")))
    few = cases_by_dtypes(task, task.seen)[0]
    assert len(few) == chosen and {case.values["dtype"] for case in few} == {"float32"}
    assert [case.values["M"] for case in (few[0], few[-1])] == [2, count + 1]
