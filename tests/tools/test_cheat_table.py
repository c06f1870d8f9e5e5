"""The corpus of cheats holds together, and its page shows the results of exactly these files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arena.results.verdict import Status
from tests.candidates import name
from tests.cheat_fixtures import CheatFixture, Entry, cheat_fixtures, digest, read, table
from tests.tools import ROOT, load


def test_every_cheat_has_a_number_and_none_is_missing() -> None:
    assert [entry.number for entry in table()] == list(range(1, len(table()) + 1))
    cited = {number for fixture in cheat_fixtures() for number in fixture.cheats}
    assert cited <= {entry.number for entry in table()}


@pytest.mark.parametrize("entry", table(), ids=lambda entry: str(entry.number))
def test_every_cheat_has_an_example_a_test_or_a_confession(entry: Entry) -> None:
    assert entry.tests or entry.limit or any(entry.number in fixture.cheats for fixture in cheat_fixtures())
    for test in entry.tests:
        file, _, function = test.partition("::")
        assert f"def {function}(" in (ROOT / file).read_text(encoding="utf-8") if function else (ROOT / file).is_file()


@pytest.mark.parametrize("fixture", cheat_fixtures(), ids=lambda fixture: name(fixture.path))
def test_headers_hold_together(fixture: CheatFixture) -> None:
    assert fixture.how.endswith((".", ")"))
    assert not (fixture.honest and fixture.uncaught)
    if fixture.honest:
        assert fixture.expected["GPU"] == (Status.PASSED,)
    assert len(fixture.meaningless) < 2, "a candidate that means nothing anywhere"


def test_there_are_twenty_honest_candidates_and_more() -> None:
    assert len([fixture for fixture in cheat_fixtures() if fixture.honest]) > 20


def test_a_file_that_does_not_say_what_to_expect_is_refused(tmp_path: Path) -> None:
    silent = tmp_path / "silent.py"
    silent.write_text('"""A kernel."""\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"silent\.py"):
        read(silent)


def test_a_result_of_another_text_is_not_shown(tmp_path: Path) -> None:
    page = load("cheat_table")
    fixture = cheat_fixtures()[0]
    label = f"{fixture.path.parent.name}/{fixture.path.name}"
    assert page._shown(fixture, "CPU", {label: ["passed", "0000"]}) == "not run"


def test_results_of_another_device_leave_the_page_and_the_kept_ones_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, fixture = load("cheat_table"), cheat_fixtures()[0]
    label = f"{fixture.path.parent.name}/{fixture.path.name}"
    results = tmp_path / "cheats.json"
    results.write_text(json.dumps({label: ["passed", digest(fixture.path)]}), encoding="utf-8")
    monkeypatch.setattr(page, "PAGE", tmp_path / "cheats.md")
    monkeypatch.setattr(page, "RESULTS", dict(page.RESULTS))  # `main` changes it
    monkeypatch.setattr("sys.argv", ["cheat_table.py", "--gpu", "--results", str(results)])
    page.main()
    assert not (tmp_path / "cheats.md").exists()
    assert page._seen("GPU") == json.loads(results.read_text(encoding="utf-8"))
