"""A kept verdict holds for the same candidate, task and judge, and for no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import verdicts_kept
from tests.candidates import name

FAULT = """\"\"\"expect: wrong_result. A text.\"\"\"\n"""


@pytest.fixture
def candidate(tmp_path: Path) -> Path:
    path = tmp_path / "rms_norm" / "fault.py"
    path.parent.mkdir()
    path.write_text(FAULT, encoding="utf-8")
    return path


@pytest.fixture
def known(candidate: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = {name(candidate): verdicts_kept.key(candidate)}
    monkeypatch.setattr(verdicts_kept, "_kept", lambda: found)
    assert verdicts_kept.is_kept(candidate)
    return candidate


def test_another_text_is_judged(known: Path) -> None:
    known.write_text(f"{FAULT}\n", encoding="utf-8")
    assert not verdicts_kept.is_kept(known)


def test_another_judge_judges_again(known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts_kept, "code_key", lambda: "another")
    assert not verdicts_kept.is_kept(known)


def test_with_other_cases_it_is_judged_again(known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts_kept, "_hash_of", lambda task: "another")
    assert not verdicts_kept.is_kept(known)


def test_a_new_candidate_is_judged(known: Path) -> None:
    new = known.rename(known.with_name("another.py"))
    assert not verdicts_kept.is_kept(new)
