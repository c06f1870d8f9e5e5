"""`arena transcript`: finds a trial by what a person types, prints it safely, and says what there is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from arena.cli.transcript import EXAMPLES, transcript
from arena.errors import UsageError
from arena.results.session import Event, EventKind, Flag, Tokens
from arena.results.transcripts import TranscriptWriter, transcript_path
from arena.runs import records
from tests.reports import builders as b

app = typer.Typer(rich_markup_mode="rich")
app.command("transcript", epilog=EXAMPLES)(transcript)
EVENTS = (
    Event(EventKind.MESSAGE, "I start [bold]here[/bold] \x1b[2J", 1.0, tokens=Tokens(1500, 20)),
    Event(EventKind.TOOL_CALL, '{"command": "cat heldout.yaml"}', 2.0, "Bash", "c1"),
    Event(EventKind.TOOL_RESULT, "x" * 2000, 3.0, call="c1", failed=True),
    Event(EventKind.TOOL_CALL, "", 4.0, "Edit", "c2", diff="-old\n+new"),
    Event(EventKind.MESSAGE, "child \x9b2J", 5.0, parent="c2"),
)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A run `june` of two tasks, the first twice, with transcripts."""
    folder = tmp_path / "june"
    tasks = ["hip2hip/m/gelu", "triton2triton/n/rms"]
    trials = [b.trial(tasks[0], cases=[b.case("s1", 2.0)], attempt=n, run="june") for n in (1, 2)]
    trials += [b.trial(tasks[1], cases=[b.case("s1", 2.0), b.heldout()], run="june")]
    records.write_head(folder, b.run(trials, tasks=tasks, attempts=2, name="june").info)
    flags = (Flag(1, "held-out cases", "cat heldout.yaml"),)
    for trial in trials:
        records.write_trial(folder, replace(trial, session=b.session(b.evaluated(1), flags=flags)))
        with TranscriptWriter(transcript_path(folder, *trial.key)) as writer:
            for event in EVENTS:
                writer.event(event)
            writer.raw("raw \x9b line", 1.0)
            writer.evaluation(b.evaluated(1), b"kernel", "feedback", b"{}")
    return tmp_path


def show(runs: Path, *arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments, "--runs-dir", str(runs)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(
    "trial",
    [
        "june/alpha/rms",
        "june/alpha/n/rms",
        "june/alpha/triton2triton/n/rms/1",
        "june/alpha/triton2triton.n.rms",
        "june/alpha/triton2triton.n.rms.1",
        "june/alpha/rms/1",
    ],
)
def test_a_trial_is_found_by_any_of_its_names(runs: Path, trial: str) -> None:
    for name in (trial, f"{runs}/{trial}"):
        assert "alpha on triton2triton/n/rms, attempt 1 (june)" in show(runs, name)


def test_what_is_shown(runs: Path) -> None:
    shown = show(runs, "june/alpha/gelu/2")
    for words in (
        "attempt 2",
        "claude_code 2.1.197",
        "I start [bold]here[/bold]",
        "1.5k in, 20 out",
        "command: cat heldout.yaml",
        "reaches for held-out cases",
        "1400 characters left out; `--full` shows them",
        "+new",
        "evaluation 1 at 1:00: right on seen cases 1.50× best",
        "outcome: seen only, seen 2.00×",
    ):
        assert words in shown, words
    assert "    child" in shown.split("message")[-1], "what a subagent says is indented"
    assert not {"\x1b", "\x9b"} & set(shown)
    assert show(runs, "june/alpha/gelu/2", "--full").count("x") > 2000 > shown.count("x")


def test_for_machines(runs: Path) -> None:
    events = [json.loads(line) for line in show(runs, "june/alpha/rms", "--json").splitlines()]
    assert [event["kind"] for event in events] == [str(event.kind) for event in EVENTS]
    assert events[0]["text"] == EVENTS[0].text
    raw = show(runs, "june/alpha/rms", "--raw")
    assert "\x9b" not in raw
    assert json.loads(raw)["line"] == "raw \x9b line"


def test_the_page(runs: Path) -> None:
    file = runs / "page.html"
    show(runs, "june/alpha/rms", "--html", str(file))
    assert "alpha on triton2triton/n/rms" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("trial", "said"),
    [
        ("june/alpha/gelu", "not one transcript, but several; name one of:\n  .*gelu/1\n  .*gelu/2"),
        ("june/alpha/elu", "has no transcript; name one of:\n  .*gelu/1\n"),
        ("june/beta/gelu/1", "has no transcript; name one of"),
        ("june/alpha/gelu/3", "has no transcript; name one of"),
        ("june", "several; name one of"),
        ("july/alpha/gelu", "no run folder here or in"),
    ],
)
def test_errors_list_what_there_is(runs: Path, trial: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        show(runs, trial)


def test_a_run_without_transcripts_and_a_trial_without_a_record(runs: Path) -> None:
    for path in (runs / "june" / "trials").rglob("*.json"):
        path.unlink()
    assert "no verdict: no record" in show(runs, "june/alpha/rms")
    records.write_head(runs / "bare", b.simple([1.0]).info)
    with pytest.raises(UsageError, match="has no transcripts: agents that only copy"):
        show(runs, "bare/alpha/rms")


def test_help_ends_in_examples() -> None:
    assert "arena transcript runs/monday" in CliRunner().invoke(app, ["--help"]).output.split("Examples")[-1]
