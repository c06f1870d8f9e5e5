"""An engine is found in a folder before an installation, with its version, and never imported."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from arena.errors import UsageError
from arena.integrations.yardstick.engines import find_engine
from tests.integrations.yardstick.engine_files import write_engine


def test_a_source_may_be_a_checkout_whose_package_lies_deeper(tmp_path: Path) -> None:
    write_engine(tmp_path / "checkout" / "python")
    found = find_engine("vllm", [tmp_path, tmp_path / "checkout"])
    assert found is not None and found.root == tmp_path / "checkout" / "python" and found.version == "unknown"


def test_the_version_is_the_noted_one_else_the_distributions_else_the_commit(tmp_path: Path) -> None:
    write_engine(tmp_path)

    def version() -> str:
        found = find_engine("vllm", [tmp_path])
        assert found is not None
        return found.version

    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *command], check=True)
    assert len(version()) == 12 and int(version(), 16) >= 0
    (tmp_path / "vllm-0.9.1.dist-info").mkdir()
    assert version() == "0.9.1"
    (tmp_path / "vllm.version").write_text("noted\n", encoding="utf-8")
    assert version() == "noted"


def test_an_installed_engine_is_found_without_running_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(write_engine(tmp_path)))
    found = find_engine("vllm")
    assert found is not None and found.root == tmp_path


def test_an_engine_that_is_nowhere_is_none_and_a_missing_folder_an_error(tmp_path: Path) -> None:
    assert find_engine("mamba", [tmp_path]) is None
    with pytest.raises(UsageError, match="no such folder"):
        find_engine("vllm", [tmp_path / "missing"])
