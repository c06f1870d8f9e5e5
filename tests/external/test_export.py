"""The exports of a run that the real judge made, read by the libraries and commands that they are for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytest.importorskip("pyarrow", reason="needs the extra `export`; run tools/external.sh export")

from pyarrow import parquet

from arena import Client
from tests.external.conftest import TASK, Address
from tests.external.rewards import changed


def arena(*arguments: str) -> str:
    command = [sys.executable, "-m", "arena", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def run(judge: Address) -> Path:
    """A run folder with two episodes: a kernel that passes, and one that does not compile."""
    with Client(*judge) as client:
        kernel = changed(client.task(TASK).kernel)
        for agent, text in (("right", kernel), ("broken", "def rms_norm(:")):
            client.finish(client.begin(TASK, seed=1, agent=agent).episode, text)
    return Path(os.environ["ARENA_RUN"])


def test_a_data_set_and_submissions(run: Path, tmp_path: Path) -> None:
    arena("export", "parquet", str(run), "--out", str(tmp_path / "data"))
    trials = parquet.read_table(tmp_path / "data" / "trials.parquet").to_pylist()
    statuses = {trial["agent"]: (trial["outcome"], trial["reward"] > -1, trial["kernel"][:3]) for trial in trials}
    assert statuses["broken"] == ("failed", False, "def")
    assert statuses["right"][:2] == ("solved", True)
    cases = parquet.read_table(tmp_path / "data" / "cases.parquet").to_pylist()
    assert {case["split"] for case in cases} == {"seen", "heldout"}
    card = (tmp_path / "data" / "README.md").read_text(encoding="utf-8")
    named = {one["data_files"] for one in yaml.safe_load(card.split("---")[1])["configs"]}
    assert named == {"trials.parquet", "cases.parquet"} and "{" not in card

    told = arena("export", "submission", str(run), "--out", str(tmp_path / "out"))
    folders = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert folders == ["broken__no-model", "right__no-model"] and all(name in told for name in folders)
    metadata = yaml.safe_load((tmp_path / "out" / folders[1] / "metadata.yaml").read_text(encoding="utf-8"))
    assert (metadata["agent_display_name"], metadata["trials"], metadata["emulated"]) == ("right", 1, True)
    arena("site", *(str(tmp_path / "out" / name) for name in folders), "--out", str(tmp_path / "site"))
    assert "right" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
