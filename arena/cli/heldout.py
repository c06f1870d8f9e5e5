"""`arena heldout`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.markup import escape

from arena.cli.console import err, examples, out, print_json
from arena.cli.corpora import TasksDirs
from arena.cli.devices import Platform
from arena.errors import UsageError
from arena.results.verdict import Status

if TYPE_CHECKING:
    from arena.judge.process.client import JudgeClient
    from arena.task.definition import Task

_FEWEST = 5
"""cases of a held-out file; its schema has the same number"""

app = typer.Typer(
    help="Draw fresh held-out cases.",
    epilog=examples("arena heldout sample --seed 7 --out private"),
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@app.callback()
def _group() -> None:
    """Draw fresh held-out cases."""


@app.command(
    "sample",
    epilog=examples(
        "arena heldout sample --seed 7 --out private",
        "arena heldout sample --seed 7 --tasks rms_norm --max-work 1e6 --out private",
    ),
)
def sample(
    seed: Annotated[int, typer.Option(help="The same seed draws the same cases.")],
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for <task id>/heldout.yaml.")],
    tasks: Annotated[list[str] | None, typer.Option(help="Task ids or globs; default: all tasks.")] = None,
    count: Annotated[int, typer.Option(help="Cases per task.", min=_FEWEST)] = 8,
    tasks_dir: TasksDirs = None,
    platform: Platform = "auto",
    max_work: Annotated[
        float | None, typer.Option(help="Largest operations plus bytes of all tensors of a case.", min=1)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Cases written and left out, as JSON.")] = False,
) -> None:
    """Draw fresh held-out cases from the declared domains and check the baseline on them.

    Use them with `heldout: FOLDER` in a run configuration. Cases on which the baseline fails are left out; with
    fewer than five no file is written. On the CPU platform --max-work is 3e6 unless it is given. Many short rows may
    still take minutes there, since each program of a kernel is interpreted.

    Exit code 0: every case passed; 1: some were left out; 3: the judge failed.
    """
    from arena.judge.process.client import JudgeClient
    from arena.task.corpus.corpora import open_corpora
    from arena.task.options import CPU_MAX_WORK

    corpus = open_corpora(tasks_dir or ()).load_selected(tasks or ["*"])
    samples = []
    with JudgeClient(platform) as judge:
        if max_work is None and judge.environment.device.emulated:
            max_work = CPU_MAX_WORK
        for name, task in corpus.items():
            err.print(f"{name}: {count} cases to draw and to check", highlight=False)
            samples.append(_sample(judge, task, out_dir / name, CaseDraw(count, seed, max_work)))
            if not as_json:
                _show(samples[-1])
    if as_json:
        print_json(samples)
    if any(one.file is None or one.left_out for one in samples):
        raise typer.Exit(1)


class CaseDraw(NamedTuple):
    """How many cases to draw for a task, from which seed, and how large they may be."""

    cases: int
    seed: int
    max_work: float | None


@dataclass(frozen=True)
class Sample:
    """What came of one task: `left_out` gives the reason for each case by its sizes; without a file, see `problem`."""

    task: str
    file: str | None
    checked: int
    left_out: dict[str, str]
    problem: str = ""


def _sample(judge: JudgeClient, task: Task, folder: Path, draw: CaseDraw) -> Sample:
    """Draw cases for one task, and write those that pass."""
    from arena.processes.scratch import scratch
    from arena.task.corpus.sampling import sample_cases, to_yaml
    from arena.task.corpus.task_folder import HELDOUT
    from arena.task.options import Options

    try:
        cases = sample_cases(task, *draw)
    except UsageError as problem:
        return Sample(task.id, None, 0, {}, str(problem))
    with scratch("heldout") as place:
        drawn = Path(place, HELDOUT)
        drawn.write_text(to_yaml(cases), encoding="utf-8")
        found = judge.check_baseline(task.path, drawn, Options(max_work=draw.max_work))
    checked = tuple(case for case in cases if found.get(case.id) == Status.PASSED)
    left_out = {case.label: found.get(case.id, "too large here") for case in cases if case not in checked}
    if len(checked) < _FEWEST:
        return Sample(task.id, None, len(checked), left_out, f"no file, since a file has at least {_FEWEST} cases")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / HELDOUT
    file.write_text(to_yaml(checked), encoding="utf-8")
    return Sample(task.id, str(file), len(checked), left_out)


def _show(sample: Sample) -> None:
    for label, why in sample.left_out.items():
        text = escape(f"{sample.task} {label}: {why}")
        err.print(f"[red]left out: {text}[/red]", highlight=False, soft_wrap=True)
    where = sample.file or f"{sample.task}: {sample.problem}"
    text = f"{where}: {sample.checked} cases, all pass; {len(sample.left_out)} left out"
    out.print(escape(text), highlight=False, soft_wrap=True)
