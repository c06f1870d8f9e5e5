"""`arena heldout`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.markup import escape

from arena.cli.console import err, examples, out
from arena.cli.corpora import TasksDirs
from arena.errors import UsageError
from arena.model.verdict import Status

if TYPE_CHECKING:
    from arena.judge.client import JudgeClient
    from arena.model.task import Task

_FEWEST = 5
"""cases of a held-out file; its schema has the same number"""

app = typer.Typer(help="Renew the held-out cases.", no_args_is_help=True, rich_markup_mode="rich")


@app.callback()
def _group() -> None:
    """Renew the held-out cases."""


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
    tasks: Annotated[list[str] | None, typer.Option(help="Task ids or globs; all without.")] = None,
    count: Annotated[int, typer.Option(help="Cases per task.", min=_FEWEST)] = 8,
    tasks_dir: TasksDirs = None,
    platform: Annotated[str, typer.Option(help="Where to prove them: auto, cpu, cuda or rocm.")] = "auto",
    max_work: Annotated[
        float | None, typer.Option(help="Largest operations plus bytes of all tensors of a case.", min=1)
    ] = None,
) -> None:
    """Draw fresh held-out cases from the declared domains and prove the baseline right on them.

    Use them with `heldout: FOLDER` in a run configuration. Cases on which the baseline fails are left out; with
    fewer than five no file is written. On the CPU platform --max-work is 3e6 unless it is given.

    Exit code 0: every case was proven; 1: some were left out; 3: the judge failed.
    """
    from arena.corpus.corpora import open_corpora
    from arena.judge.client import JudgeClient
    from arena.judge.messages import CPU_MAX_WORK

    corpus = open_corpora(tasks_dir or ()).load_selected(tasks or ["*"])
    complete = True
    with JudgeClient(platform) as judge:
        if max_work is None and judge.environment.device.emulated:
            max_work = CPU_MAX_WORK
        for name, task in corpus.items():
            complete &= _sample(judge, task, out_dir / name, CaseDraw(count, seed, max_work))
    if not complete:
        raise typer.Exit(1)


class CaseDraw(NamedTuple):
    """How many cases to draw for a task, from which seed, and how large they may be."""

    cases: int
    seed: int
    max_work: float | None


def _sample(judge: JudgeClient, task: Task, folder: Path, draw: CaseDraw) -> bool:
    """Draw cases for one task, write those that are proven, and return whether all are."""
    from arena.corpus.sampling import sample_cases, to_yaml
    from arena.corpus.task_folder import HELDOUT
    from arena.judge.messages import Options
    from arena.scratch import scratch

    try:
        cases = sample_cases(task, *draw)
    except UsageError as problem:
        err.print(f"[red]no cases for {escape(str(problem))}[/red]", highlight=False)
        return False
    with scratch("heldout") as place:
        drawn = Path(place, HELDOUT)
        drawn.write_text(to_yaml(cases), encoding="utf-8")
        found = judge.prove(task.path, drawn, Options(max_work=draw.max_work))
    proven = tuple(case for case in cases if found.get(case.id) == Status.PASSED)
    for case in cases:
        if case not in proven:
            why = found.get(case.id, "too large for this platform")
            err.print(
                f"[red]left out: {task.id} {escape(f'{case.label}: {why}')}[/red]", highlight=False, soft_wrap=True
            )
    written = len(proven) >= _FEWEST
    if written:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / HELDOUT).write_text(to_yaml(proven), encoding="utf-8")
    where = folder / HELDOUT if written else f"{task.id}: no file, since a file has at least {_FEWEST} cases"
    said = f"{where}: {len(proven)} cases, all proven; {len(cases) - len(proven)} left out"
    out.print(said, highlight=False, soft_wrap=True)
    return len(proven) == len(cases)
