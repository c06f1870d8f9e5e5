"""`arena heldout`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.console import err, examples, out
from arena.cli.corpora import TasksDirs

app = typer.Typer(help="Draw fresh held-out cases.", no_args_is_help=True, rich_markup_mode="rich")


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
    count: Annotated[int, typer.Option(help="Cases per task.", min=5)] = 8,
    tasks_dir: TasksDirs = None,
    platform: Annotated[str, typer.Option(help="Platform of the check: auto, cpu, cuda or rocm.")] = "auto",
    max_work: Annotated[
        float | None, typer.Option(help="Largest operations plus bytes of all tensors of a case.", min=1)
    ] = None,
) -> None:
    """Draw fresh held-out cases from the declared domains and check that the baseline passes them.

    Use them with `heldout: FOLDER` in a run configuration. On the CPU platform only small cases can be checked: without
    --max-work the output says how many were not.
    """
    from arena.corpus.corpora import open_corpora
    from arena.corpus.sampling import sample_cases, to_yaml
    from arena.corpus.task_folder import HELDOUT
    from arena.judge.client import JudgeClient
    from arena.judge.messages import Options

    corpus = open_corpora(tasks_dir or ()).load_selected(tasks or ["*"])
    wrong = 0
    with JudgeClient(platform) as judge:
        for name, task in corpus.items():
            cases = sample_cases(task, count, seed, max_work)
            path = out_dir / name / HELDOUT
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(to_yaml(cases), encoding="utf-8")
            checked = judge.check_baseline(task.path, path, Options())
            failed = {case: why for case, why in checked.items() if why != "passed"}
            wrong += len(failed)
            unchecked = len(cases) - len(checked)
            note = f", {unchecked} too large for this platform and not checked" if unchecked else ""
            out.print(f"{path}: {len(cases)} cases, {len(checked) - len(failed)} pass{note}", highlight=False)
            for case, why in failed.items():
                err.print(f"[red]{name} {case}: {why}[/red]", highlight=False)
    if wrong:
        raise typer.Exit(1)
