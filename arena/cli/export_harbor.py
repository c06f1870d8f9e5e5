"""`arena export harbor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.console import err, examples
from arena.cli.corpora import TasksDirs
from arena.cli.devices import Platform
from arena.cli.tasks_prompt import environment_here
from arena.integrations.harbor import HarborSettings, Layout
from arena.task.corpus.split import TaskSplit

EXAMPLES = examples(
    "arena export harbor --out datasets/unseen-arena --split evaluation",
    "arena export harbor --out harbor --tasks rms_norm --tasks softmax --platform cpu    # for `arena serve`",
    "arena export harbor --out harbor --layout sidecar --platform cuda    # a judge beside each container",
    "harbor run -p harbor -a oracle",
)


def harbor(
    out: Annotated[Path, typer.Option(help="Folder of the task folders.")],
    tasks: Annotated[
        list[str] | None, typer.Option(help="Ids, bare names or globs; `!pattern` leaves out; repeatable.")
    ] = None,
    split: Annotated[TaskSplit, typer.Option(help="Export the tasks of this split alone.")] = TaskSplit.ALL,
    layout: Annotated[
        Layout, typer.Option(help="A judge at $ARENA_URL, or a service beside each container.")
    ] = Layout.URL,
    platform: Platform = "auto",
    image: Annotated[str, typer.Option(help="Image of the agent's container; python3 must be on PATH.")] = (
        "python:3.12-slim"
    ),
    gpus: Annotated[int, typer.Option(help="GPUs of the agent's container; the judge has its own.", min=0)] = 0,
    evaluations: Annotated[int, typer.Option(help="Evaluations of one trial, as the server has them.", min=1)] = 50,
    minutes: Annotated[float, typer.Option(help="Minutes of one trial, as the server has them.", min=0.01)] = 30.0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace folders that were exported before.")] = False,
    tasks_dir: TasksDirs = None,
) -> None:
    """Write tasks as folders of the Harbor framework (schema 1.4), each a thin client of `arena serve`.

    Run it where the judge runs: instructions name this machine's device.
    """
    from arena.integrations.harbor.folder import export
    from arena.results.session import Limits
    from arena.runs.serve.episodes import served
    from arena.task.corpus.corpora import open_corpora

    corpora, patterns = open_corpora(tasks_dir or ()).including(tasks or ())
    environment = environment_here(platform)
    limits = Limits(wall_clock_s=minutes * 60, evaluations=evaluations)
    settings = HarborSettings(layout, limits, environment.device.platform, image, gpus)
    chosen = served(corpora, patterns, split)
    for name in chosen:
        export(corpora.load(name), out, environment, settings, overwrite)
    err.print(f"{len(chosen)} tasks in {out}; next: harbor run -p {out} -a oracle", highlight=False)
