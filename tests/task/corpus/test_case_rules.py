"""Every shipped task keeps the rules of its corpus, or says why not: `arena/checks/tasks/rules.py` has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.checks.tasks.static import find_duplicates, static_items
from arena.errors import FileError
from arena.results.check import CheckOutcome
from arena.task.corpus.level import level_of_corpus
from arena.task.corpus.task_folder import TASKS
from arena.task.rules import RULES, RuleLevel
from tests.shipped import shipped_tasks


def test_every_shipped_task_keeps_every_rule() -> None:
    tasks = shipped_tasks()
    duplicates = find_duplicates(tasks)
    wrong = [
        f"{task.id}: {item.name}: {item.detail}"
        for task in tasks.values()
        for item in static_items(task, duplicates)
        if item.outcome not in (CheckOutcome.PASSED, CheckOutcome.DECLARED)
    ]
    assert wrong == []


def test_the_shipped_corpus_is_strict() -> None:
    assert level_of_corpus(TASKS) is RuleLevel.STRICT


def test_a_corpus_without_a_level_has_its_own(tmp_path: Path) -> None:
    assert level_of_corpus(tmp_path) is RuleLevel.OWN


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rules: lenient\n", "corpus.yaml:1: `rules`: 'lenient' is not one of own, strict"),
        ("rule: own\n", "`rule`: unknown key; expected one of: rules"),
        ("{}\n", "'rules' is missing"),
    ],
)
def test_a_level_that_there_is_not_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "corpus.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(FileError) as caught:
        level_of_corpus(tmp_path)
    assert says in str(caught.value)


def test_the_page_has_every_rule_at_its_level() -> None:
    page = (Path(__file__).parents[3] / "docs/contribute/check-failures.md").read_text(encoding="utf-8")
    own_part, strict_part = page.split("\n## Rules of level strict\n")
    wanted = [f"| `{rule.name}` | {rule.text} |" for rule in RULES if rule.level is RuleLevel.STRICT]
    assert [line for line in strict_part.splitlines() if line.startswith("| `")][: len(wanted)] == wanted
    listed = {line.split("`")[1] for line in own_part.splitlines() if line.startswith("| `")}
    assert {rule.name for rule in RULES if rule.level is RuleLevel.OWN} <= listed
