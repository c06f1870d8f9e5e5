"""`arena transcript`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from arena.cli.console import err, examples, out
from arena.errors import UsageError

if TYPE_CHECKING:
    from arena.reports.rows import TrialRow

EXAMPLES = examples(
    "arena transcript runs/monday/claude_code/rms_norm",
    "arena transcript runs/monday/claude_code/hip2hip/modules/softmax/2 --full",
    "arena transcript monday/codex/rms_norm --html rms_norm.html",
    "arena transcript monday/codex/rms_norm --json | jq -r .kind | sort | uniq -c",
)
RUNS = Path("runs")
_C1 = re.compile("[\x7f-\x9f]")
"""Control characters that JSON does not escape and terminals obey."""


class _Place(NamedTuple):
    """A transcript's folder, the run it is in, and the trial it is of."""

    folder: Path
    run: Path
    agent: str
    name: str


def transcript(
    trial: Annotated[str, typer.Argument(help="RUN/AGENT/TASK or RUN/AGENT/TASK/ATTEMPT; TASK may be a bare name.")],
    html: Annotated[Path | None, typer.Option(help="Write the page of the trial to this file.", dir_okay=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The events as JSON lines.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="The output of the agent's program, as JSON lines.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Show long texts in full.")] = False,
    runs_dir: Annotated[Path, typer.Option(help="Folder of the run folders.")] = RUNS,
) -> None:
    """Show what a coding agent did in one trial: messages, tool calls, edits, evaluations, tokens and time."""
    from arena.results.transcripts import EVENTS, RAW, read_transcript

    place = _find(trial, runs_dir)
    if raw or as_json:
        _print_lines(place.folder / (RAW if raw else EVENTS))
        return
    found, row = read_transcript(place.folder), _row(place)
    if html is not None:
        from arena.reports.transcript_page import transcript_page

        html.write_text(transcript_page(row, found), encoding="utf-8")
        err.print(f"page: {html}", highlight=False)
        return
    from arena.cli.transcript_render import shown

    for part in shown(row, found, full=full):
        out.print(part, highlight=False)


def _find(trial: str, runs_dir: Path) -> _Place:
    """The transcript that is meant; raises `UsageError` with what there is where it is none or not one."""
    from arena.results.transcripts import find_transcripts

    run, rest = _run_and_rest(trial, runs_dir)
    places = [_Place(folder, run, folder.parent.name, folder.name) for folder in find_transcripts(run)]
    if not places:
        raise UsageError(f"{run} has no transcripts: agents that only copy a file leave none")
    matching = [place for place in places if _matches(place, rest)]
    if len(matching) == 1:
        return matching[0]
    problem = "is not one transcript, but several" if matching else "has no transcript"
    listed = "\n  ".join(_name(place) for place in matching or places)
    raise UsageError(f"{trial} {problem}; name one of:\n  {listed}")


def _run_and_rest(trial: str, runs_dir: Path) -> tuple[Path, list[str]]:
    """The run's folder, as a path or by its name below `runs_dir`, and the parts after it."""
    from arena.results.transcripts import FOLDER
    from arena.runs.records import HEAD

    parts = Path(trial).parts
    for end in range(len(parts), 0, -1):
        for run in (Path(*parts[:end]), runs_dir.joinpath(*parts[:end])):
            if (run / HEAD).is_file() or (run / FOLDER).is_dir():
                return run, list(parts[end:])
    raise UsageError(f"{trial}: no run folder here or in {runs_dir}; write RUN/AGENT/TASK, `arena run` makes a run")


def _matches(place: _Place, rest: list[str]) -> bool:
    """Return whether AGENT/TASK/ATTEMPT, or as much of it as was written, names this transcript."""
    if not rest:
        return True
    task, attempt = place.name.rsplit(".", 1)
    wanted = rest[1:]
    if len(wanted) > 1 and wanted[-1].isdigit():
        if wanted[-1] != attempt:
            return False
        wanted = wanted[:-1]
    name = ".".join(wanted)
    return rest[0] == place.agent and (not name or f".{task}".endswith(f".{name}") or name == place.name)


def _name(place: _Place) -> str:
    task, attempt = place.name.rsplit(".", 1)
    return f"{place.run}/{place.agent}/{task.replace('.', '/')}/{attempt}"


def _row(place: _Place) -> TrialRow:
    """The trial's record; the run is read whole, so that a record that does not belong to it is an error."""
    from arena.reports.rows import trial_rows
    from arena.results.transcripts import transcript_path
    from arena.runs.submission import read_folder

    run = read_folder(place.run)
    for row in trial_rows([run]):
        if transcript_path(run.path, row.agent, row.task, row.attempt) == place.folder:
            return row
    raise UsageError(f"{place.folder}: the run {run.info.run} did not plan this trial")


def _print_lines(path: Path) -> None:
    """JSON lines as they lie on disk; control characters that JSON leaves as they are become escapes."""
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for line in file:
            if line.endswith("\n"):
                sys.stdout.write(_C1.sub(lambda match: f"\\u{ord(match[0]):04x}", line))
    sys.stdout.flush()
