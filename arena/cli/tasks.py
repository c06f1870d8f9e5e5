"""`arena tasks`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from arena.cli import tasks_check, tasks_prompt
from arena.cli.console import examples, out, print_json
from arena.cli.corpora import TasksDirs

if TYPE_CHECKING:
    from arena.task.corpus.corpora import Corpora
    from arena.task.definition import Task

_LEAST_SUMMARY = 16
"""characters of a summary that say anything"""

app = typer.Typer(
    help="List, show and check tasks.",
    epilog=examples("arena tasks list 'hip2hip/*'", "arena tasks show gelu", "arena tasks check gelu --details"),
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.command("check", epilog=tasks_check.EXAMPLES)(tasks_check.check)
app.command("prompt", epilog=tasks_prompt.EXAMPLES)(tasks_prompt.prompt)


@app.command("quality", epilog=examples("arena tasks quality --run runs/full > reports/tables/task-quality.md"))
def quality(
    checks: Annotated[Path, typer.Option(help="Folder of the checks.")] = tasks_check.CHECKS,
    run: Annotated[Path | None, typer.Option(help="Run of `noop` and `expert` on a GPU, for the timings.")] = None,
    tasks_dir: TasksDirs = None,
) -> None:
    """Print the quality of every task as Markdown, from kept checks on the CPU and a run on a GPU."""
    from arena.reports.task_quality import gather, render
    from arena.task.corpus.corpora import open_corpora

    tasks = open_corpora(tasks_dir or ()).load_selected(["*"])
    typer.echo(render(*gather(tuple(tasks.values()), checks, run)))


@app.command("list", epilog=examples("arena tasks list", "arena tasks list 'hip2hip/*' --json"))
def list_tasks(
    patterns: Annotated[list[str] | None, typer.Argument(help="Ids or globs; default: all tasks.")] = None,
    tasks_dir: TasksDirs = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with content hashes.")] = False,
) -> None:
    """List tasks, one line each, with a count per task type. A malformed task is listed with what is wrong."""
    from arena.task.corpus.corpora import open_corpora
    from arena.task.definition import TaskType

    corpora = open_corpora(tasks_dir or ())
    tasks = {name: _loaded(corpora, name) for name in corpora.select(patterns or ["*"])}
    if as_json:
        print_json([_as_json(name, task) for name, task in tasks.items()])
        return
    for line in _lines(tasks, out.width):
        out.print(line, highlight=False, no_wrap=True, overflow="ignore", crop=False)
    counts = {kind: sum(name.startswith(f"{kind}/") for name in tasks) for kind in TaskType}
    total = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    out.print(f"{total}: {len(tasks)} in all", soft_wrap=True)


def _loaded(corpora: Corpora, name: str) -> Task | str:
    """Load a task, or say what is wrong with it."""
    from arena.errors import FileError

    try:
        return corpora.load(name)
    except FileError as problem:
        return str(problem)


def _cells(name: str, task: Task | str) -> tuple[str, ...]:
    if isinstance(task, str):
        return (name, "", "", "")
    return (name, str(len(task.seen)), str(len(task.heldout)), "yes" if task.expert else "")


def _lines(tasks: Mapping[str, Task | str], width: int) -> Iterator[str]:
    """Yield a line for each task: its id, and of the rest as many columns as fit. Only summaries are cut."""
    rows = [("task", "seen", "held-out", "expert"), *(_cells(name, task) for name, task in tasks.items())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    shown = [n for n in range(len(widths)) if n == 0 or sum(widths[: n + 1]) + 2 * n <= width]
    room = width - sum(widths) - 2 * len(widths)
    lines = [escape("  ".join(row[n].ljust(widths[n]) for n in shown)) for row in rows]
    wide = room >= _LEAST_SUMMARY
    yield f"[bold]{lines[0]}{'  computes' if wide else ''}[/bold]"
    for line, task in zip(lines[1:], tasks.values(), strict=True):
        if isinstance(task, str):
            yield f"{line}  [red]{escape(task)}[/red]"
        elif wide:
            yield f"{line}  {escape(task.summary if len(task.summary) <= room else f'{task.summary[: room - 1]}…')}"
        else:
            yield line.rstrip()


def _as_json(task_id: str, task: Task | str) -> dict[str, object]:
    task_type, suite, name = task_id.split("/")
    fields: dict[str, object] = {"id": task_id, "type": task_type, "suite": suite, "name": name}
    if isinstance(task, str):
        return {**fields, "problem": task}
    return {
        **fields,
        "summary": task.summary,
        "operator": "/".join(task.definition.parts[-2:]),
        "family": task.family,
        "source": task.source,
        "seen": len(task.seen),
        "heldout": len(task.heldout),
        "has_expert": task.expert is not None,
        "has_baseline_kernel": task.baseline_kernel is not None,
        "dtypes": sorted({dtype for choices in task.dtypes.values() for dtype in choices}),
        "path": str(task.path),
        "hash": task.content_hash,
    }


@app.command("release", epilog=examples("arena tasks release", "arena tasks release --number 2"))
def release(
    number: Annotated[int | None, typer.Option(help="Write a release of this number.", min=1)] = None,
    tasks_dir: TasksDirs = None,
) -> None:
    """Say which release the tasks are, or freeze them as a new one in RELEASE.json.

    Exit code 0: the tasks are those of the release; 1: some differ.
    """
    from arena.errors import UsageError
    from arena.task.corpus import release as releases
    from arena.task.corpus.corpora import open_corpora
    from arena.task.corpus.task_folder import TASKS

    place = (tasks_dir or [TASKS])[0] / releases.FILE
    loaded = open_corpora(tasks_dir or ()).load_selected(["*"])
    hashes = {name: task.content_hash for name, task in loaded.items()}
    old = releases.read_release(place)
    if number is not None:
        if old is not None and number <= old.number:
            raise UsageError(f"--number {number}: release {old.number} exists; give a larger number")
        old = releases.CorpusRelease(number, development=False, tasks=hashes)
        releases.write_release(place, old)
    changed = tuple(sorted(hashes)) if old is None else old.differences(hashes)
    name = "no release yet" if old is None else f"release {old.number}, hash {old.hash}"
    out.print(f"{name}: {len(hashes)} tasks, {len(changed)} differ", highlight=False, soft_wrap=True)
    if changed:
        out.print(f"hash of these tasks: {releases.tasks_hash(hashes)}", highlight=False, soft_wrap=True)
        raise typer.Exit(1)


@app.command(
    "new",
    epilog=examples(
        "arena tasks new hip2hip my_kernel",
        "arena tasks new triton2triton my_norm --suite normalization",
        "arena tasks new triton2triton my_norm --from capture.json   # of `arena capture`",
    ),
)
def new(
    task_type: Annotated[str, typer.Argument(help="hip2hip, triton2triton, torch2hip or torch2triton.")],
    name: Annotated[str, typer.Argument(help="The task's name, which is also that of its entry.")],
    suite: Annotated[str, typer.Option(help="The folder below the task type.")] = "modules",
    calls: Annotated[
        Path | None,
        typer.Option("--from", help="Calls of `arena capture`: their arguments, sizes and counts begin the task."),
    ] = None,
    tasks_dir: TasksDirs = None,
) -> None:
    """Write a new task that loads, and list what to fill in."""
    from arena.task.corpus.captured_calls import read_calls
    from arena.task.corpus.from_calls import task_from_calls
    from arena.task.corpus.scaffolding import scaffold
    from arena.task.corpus.task_folder import TASKS

    place = (tasks_dir or [TASKS])[0]
    if calls is None:
        made = scaffold(task_type, suite, name, place)
    else:
        made = task_from_calls(read_calls(calls), task_type, suite, name, place)
    out.print(f"wrote {made.folder}; to fill in:", soft_wrap=True)
    for line in made.todo:
        out.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
    check = ["arena", "tasks", "check", name, *(["--tasks-dir", str(place)] if tasks_dir else [])]
    out.print(f"then: {shlex.join(check)}", markup=False, highlight=False, soft_wrap=True)


@app.command("show", epilog=examples("arena tasks show rms_norm", "arena tasks show hip2hip/modules/softmax --json"))
def show(
    task: Annotated[str, typer.Argument(help="Task id, bare name or folder.")],
    tasks_dir: TasksDirs = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show one task: signature, arguments with shapes and strides, domain, cases, operations and bytes of a call."""
    from arena.platforms.toolchains.task_header import signature
    from arena.runs.service.task_text import argument_views
    from arena.task.corpus.corpora import open_corpora
    from arena.task.definition import arguments

    found = open_corpora(tasks_dir or ()).find(task)
    cases = [(case, arguments(found, case)) for case in found.cases]
    if as_json:
        print_json(
            {
                "id": found.id,
                "summary": found.summary,
                "hash": found.content_hash,
                "arguments": list(argument_views(found)),
                "cases": [
                    {"id": c.id, "kind": c.kind, "timed": c.timed, "flops": a.flops, "bytes": a.num_bytes}
                    for c, a in cases
                ],
            }
        )
        return
    out.print(f"[bold]{found.id}[/bold]: {escape(found.summary)}")
    out.print(signature(found), markup=False)
    told = Table("argument", "role", "shape", "dtype", "strides", "about")
    for view in argument_views(found):
        told.add_row(*map(escape, (view.name, view.role, view.shape, view.dtype, view.strides, view.about)))
    out.print(told)
    for axis in found.axes:
        out.print(f"  {axis.name}: {axis.doc}, {axis.domain_text}", markup=False)
    for name, choices in found.dtypes.items():
        out.print(f"  {name}: {', '.join(choices)}", markup=False)
    table = Table("case", "kind", "sizes", "timed", "Mflop", "MB")
    for case, worked_out in cases:
        megabytes = f"{worked_out.num_bytes / 1e6:.3g}"
        timed = "yes" if case.timed else ""
        table.add_row(case.id, case.kind, case.label, timed, f"{worked_out.flops / 1e6:.3g}", megabytes)
    out.print(table)
