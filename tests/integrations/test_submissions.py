"""Submission folders: what is in them, and that they are run folders which the leaderboard reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from arena.cli.app import app
from arena.errors import RecordError, UsageError
from arena.integrations.submissions import write_submissions
from arena.reports.site_entries import read_entries
from arena.results.session import Session
from arena.results.transcripts import transcript_path
from arena.runs import records
from arena.runs.submission import read_submission
from tests.reports import builders as b


def run_of_two(root: Path) -> Path:
    """One agent with a model whose name has a slash, and one without sessions."""
    session: Session = replace(b.session(), model="org/model-x")
    chat = replace(b.trial(cases=[b.case()], agent="chat"), session=session)
    made = b.run([chat, b.trial(cases=[b.case()], agent="copied")])
    folder = root / "r1"
    records.write_head(folder, made.info)
    for trial in made.trials:
        records.write_trial(folder, trial)
        records.write_bytes(records.submission_folder(folder, *trial.key) / "kernel.py", trial.agent.encode())
    records.write_bytes(transcript_path(folder, *chat.key) / "events.jsonl", b"")
    return folder


def test_a_folder_for_each_agent_is_a_run_of_its_own(tmp_path: Path) -> None:
    run = run_of_two(tmp_path)
    chat, copied = write_submissions(run, tmp_path / "out")
    assert (chat.name, copied.name) == ("chat__org-model-x", "copied__no-model")
    metadata = yaml.safe_load((chat / "metadata.yaml").read_text(encoding="utf-8"))
    assert metadata["models"] == [{"model_name": "org/model-x"}] and metadata["agent_version"] == "2.1.197"
    assert (metadata["run"], metadata["trials"]) == ("r1", 1)
    (trial,) = read_submission(chat).trials
    assert trial == replace(records.read_run(run).trials[0], run="r1.chat__org-model-x")
    key = trial.key
    assert (records.submission_folder(chat, *key) / "kernel.py").read_text(encoding="utf-8") == "chat"
    assert (transcript_path(chat, *key) / "events.jsonl").is_file()
    assert not (copied / "transcripts").exists()
    assert [len(entry.rows) for entry in read_entries([chat, copied])] == [1, 1]


def test_trials_without_a_record_stay_missing(tmp_path: Path) -> None:
    run = run_of_two(tmp_path)
    records.write_head(run, replace(records.read_head(run), attempts=2))
    chat, _ = write_submissions(run, tmp_path / "out")
    assert read_submission(chat).missing == 1


def test_nothing_is_overwritten_and_no_link_is_followed(tmp_path: Path) -> None:
    run = run_of_two(tmp_path)
    write_submissions(run, tmp_path / "out")
    with pytest.raises(UsageError, match="chat__org-model-x exists"):
        write_submissions(run, tmp_path / "out")
    (run / "submissions" / "secret").symlink_to("/etc/passwd")
    with pytest.raises(RecordError, match="link"):
        write_submissions(run, tmp_path / "more")


def test_the_command_names_the_folders(tmp_path: Path) -> None:
    run = run_of_two(tmp_path)
    done = CliRunner().invoke(app, ["export", "submission", str(run), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0 and "chat__org-model-x" in done.output.replace("\n", "")
