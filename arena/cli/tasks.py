"""`arena tasks`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from arena.cli import tasks_check
from arena.cli.console import examples, out, print_json

app = typer.Typer(help="Look at the tasks, and check them.", no_args_is_help=True, rich_markup_mode="rich")
app.command("check", epilog=tasks_check.EXAMPLES)(tasks_check.check)


@app.command("quality", epilog=examples("arena tasks quality > docs/task-quality.md"))
def quality(
    checks: Annotated[Path, typer.Option(help="Where `arena tasks check` keeps its checks.")] = tasks_check.CHECKS,
    root: Annotated[Path | None, tasks_check.ROOT] = None,
) -> None:
    """Print what is known of every task's quality as markdown, from the checks that were kept."""
    from arena.analysis.task_quality import gather, render
    from arena.taskfile.corpus import TASKS, load_corpus

    typer.echo(render(gather(load_corpus(root or TASKS), checks)))


@app.command("list", epilog=examples("arena tasks list", "arena tasks list 'hip2hip/*' --json"))
def list_tasks(
    patterns: Annotated[list[str] | None, typer.Argument(help="Ids or globs; all tasks without.")] = None,
    root: Annotated[Path | None, tasks_check.ROOT] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List tasks, with a count per task type. Loads every task: a malformed one is an error."""
    from arena.model.task import TaskType
    from arena.taskfile.corpus import TASKS, load_corpus, select

    corpus = {task.id: task for task in load_corpus(root or TASKS)}
    chosen = [corpus[name] for name in select(tuple(corpus), patterns or ["*"])]
    if as_json:
        print_json([{"id": task.id, "summary": task.summary, "hash": task.content_hash} for task in chosen])
        return
    table = Table("task", "seen", "held-out", "expert", "computes")
    for task in chosen:
        expert = "yes" if task.expert else ""
        table.add_row(task.id, str(len(task.seen)), str(len(task.heldout)), expert, escape(task.summary))
    out.print(table)
    counts = {kind: sum(task.task_type is kind for task in chosen) for kind in TaskType}
    out.print(", ".join(f"{count} {kind}" for kind, count in counts.items()) + f": {len(chosen)} in all")


@app.command(
    "new",
    epilog=examples("arena tasks new hip2hip my_kernel", "arena tasks new triton2triton my_norm --suite normalization"),
)
def new(
    task_type: Annotated[str, typer.Argument(help="hip2hip, triton2triton or torch2hip.")],
    name: Annotated[str, typer.Argument(help="The task's name, which is also that of its entry.")],
    suite: Annotated[str, typer.Option(help="The folder below the task type.")] = "modules",
    root: Annotated[Path | None, tasks_check.ROOT] = None,
) -> None:
    """Write a new task that loads, and say what to fill in."""
    from arena.taskfile.corpus import TASKS
    from arena.taskfile.scaffolding import scaffold

    made = scaffold(task_type, suite, name, root or TASKS)
    out.print(f"wrote {made.folder}; to fill in:", soft_wrap=True)
    for line in made.todo:
        out.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
    out.print(f"then: arena tasks check {name}", highlight=False)


@app.command("show", epilog=examples("arena tasks show rms_norm", "arena tasks show hip2hip/modules/softmax --json"))
def show(
    task: Annotated[str, typer.Argument(help="Task id, bare name or folder.")],
    root: Annotated[Path | None, tasks_check.ROOT] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show one task: signature, domain, cases, and what a call must do at least."""
    from arena.model.task import arguments
    from arena.runner import find_task
    from arena.taskfile.corpus import TASKS
    from arena.toolchains.task_header import signature

    found = find_task(task, root or TASKS)
    cases = [(case, arguments(found, case)) for case in found.cases]
    if as_json:
        print_json(
            {
                "id": found.id,
                "summary": found.summary,
                "hash": found.content_hash,
                "cases": [{"id": c.id, "kind": c.kind, "flops": a.flops, "bytes": a.num_bytes} for c, a in cases],
            }
        )
        return
    out.print(f"[bold]{found.id}[/bold]: {escape(found.summary)}")
    out.print(signature(found), markup=False)
    for axis in found.axes:
        out.print(f"  {axis.name}: {axis.doc}, {axis.domain_text}", markup=False)
    for name, choices in found.dtypes.items():
        out.print(f"  {name}: {', '.join(choices)}", markup=False)
    table = Table("case", "kind", "sizes", "Mflop", "MB")
    for case, worked_out in cases:
        megabytes = f"{worked_out.num_bytes / 1e6:.3g}"
        table.add_row(case.id, case.kind, case.label, f"{worked_out.flops / 1e6:.3g}", megabytes)
    out.print(table)
