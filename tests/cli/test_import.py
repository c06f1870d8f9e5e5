"""`arena import`: options, table, totals and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arena.cli.app import app
from tests.integrations.importers.problems import LOSS, REFUSED, write


@pytest.mark.slow
def test_an_import_lists_and_counts(tmp_path: Path) -> None:
    checkout = str(write(tmp_path / "checkout", {"loss": LOSS, "random": REFUSED["random"]}))
    command = ["import", "kernelbench", checkout, "--out", str(tmp_path / "corpus"), "--level", "1", "--trust"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "1 of 2 problems imported" in done.output and "the model calls `rand_like`" in done.output
    again = CliRunner().invoke(app, [*command, "--only", "1_*", "--json"])
    (row,) = json.loads(again.stdout)
    assert row["outcome"] == "imported" and (tmp_path / "corpus" / row["task"] / "task.yaml").is_file()
    shown = CliRunner().invoke(app, ["tasks", "list", "--tasks-dir", str(tmp_path / "corpus")])
    assert shown.exit_code == 0 and "p001_loss" in shown.output


def test_refused_calls_say_what_to_do(tmp_path: Path) -> None:
    checkout = str(write(tmp_path / "checkout", {"loss": LOSS}))
    command = ["import", "kernelbench", checkout, "--out", str(tmp_path / "corpus"), "--level", "1"]
    untrusted = CliRunner().invoke(app, command)
    assert "add --trust" in str(untrusted.exception) and not (tmp_path / "corpus").exists()
    typed = CliRunner().invoke(app, [*command, "--trust", "--type", "hip2hip"])
    assert "expected torch2hip or torch2triton" in str(typed.exception)
