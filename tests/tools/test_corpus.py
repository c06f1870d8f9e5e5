"""`tools/corpus.py` checks what has changed, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.resources import PACKAGE
from arena.task_check import run
from tests.tools import load


def test_what_has_no_kept_result_of_its_key_is_due() -> None:
    tool = load("corpus")
    now = {"a": "1", "b": "2", "c": "", "d": "4"}
    assert tool.due(now, {"a": "1", "b": "0", "c": ""}) == ["b", "c", "d"]


@pytest.mark.slow
def test_every_task_has_a_key_of_its_own() -> None:
    keys = load("corpus").keys()
    assert len(keys) == 196 and all(keys.values())
    assert len(set(keys.values())) == 196


def test_the_code_that_checks_is_in_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def key() -> str:
        run.code_key.cache_clear()
        return run.code_key()

    monkeypatch.setattr(run, "PACKAGE", tmp_path)
    (tmp_path / "judge").mkdir()
    empty = key()
    (tmp_path / "judge" / "verify.py").write_text("a = 1")
    first = key()
    (tmp_path / "judge" / "verify.py").write_text("a = 2")
    assert len({empty, first, key()}) == 3
    before = key()
    for name in ("reporting/pages.py", "task_check/mutation.py", "task_check/mutants/hip.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("b = 1")
    assert key() == before
    assert all((PACKAGE / name).exists() for name in run.MUTANTS)
    run.code_key.cache_clear()
