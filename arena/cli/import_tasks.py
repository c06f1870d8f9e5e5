"""`arena import`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from arena.cli.console import err, examples, out, print_json

if TYPE_CHECKING:
    from arena.integrations.importers.run import Format
    from arena.integrations.importers.table import ProblemRow

app = typer.Typer(
    help="Turn other benchmarks' problems, from your own checkout, into task folders.",
    epilog=examples(
        "arena import kernelbench ~/KernelBench --trust --out imported",
        "arena import flashinfer-bench ~/flashinfer-trace --trust --out imported",
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
)
Checkout = Annotated[Path, typer.Argument(help="Folder of a checkout; nothing in it is changed.")]
Corpus = Annotated[Path, typer.Option("--out", help="Folder for the tasks; --tasks-dir takes it.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="The checkout's code may run here, and as reference inside every judge.")
]
Only = Annotated[list[str] | None, typer.Option(help="Globs of file names, or of folder names; default: all.")]
Json = Annotated[bool, typer.Option("--json", help="The rows of problems.csv as JSON.")]
Type = Annotated[str, typer.Option("--type", help="torch2hip or torch2triton: what agents are asked for.")]


@app.callback()
def _group() -> None:
    """Turn other benchmarks' problems, from your own checkout, into task folders."""


@app.command(
    "kernelbench",
    epilog=examples(
        "arena import kernelbench ~/KernelBench --trust --out imported",
        "arena import kernelbench ~/KernelBench --level 1 --only '1?_*' --type torch2triton --trust --out imported",
        "arena tasks check --tasks-dir imported --platform cuda",
    ),
)
def kernelbench(
    path: Checkout,
    corpus: Corpus,
    level: Annotated[list[int] | None, typer.Option(help="Level, 1 to 4; repeatable.", min=1, max=4)] = None,
    task_type: Type = "torch2hip",
    only: Only = None,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Import KernelBench's problems: shapes vary, weights are inputs, every task is checked on the CPU platform.

    What became of each problem is in problems.csv. A second call continues an import that was interrupted.

    Exit code 0: the import is complete, whatever was skipped; 3: some problems have no verdict.
    """
    from arena.integrations.importers import kernelbench as source

    def found() -> Mapping[Path, str]:
        return source.find(path, level or (1, 2, 3, 4))

    _import(_Request(path, corpus, task_type, only or (), trust, as_json), found, source)


@app.command("robust-kbench", epilog=examples("arena import robust-kbench ~/robust-kbench --trust --out imported"))
def robust_kbench(
    path: Checkout,
    corpus: Corpus,
    task_type: Type = "torch2hip",
    only: Only = None,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Import the forward problems of robust-kbench, as `arena import kernelbench` does."""
    from arena.integrations.importers import robust_kbench as source

    _import(_Request(path, corpus, task_type, only or (), trust, as_json), lambda: source.find(path), source)


@app.command(
    "flashinfer-bench", epilog=examples("arena import flashinfer-bench ~/flashinfer-trace --trust --out imported")
)
def flashinfer_bench(
    path: Checkout,
    corpus: Corpus,
    task_type: Type = "torch2hip",
    only: Only = None,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Import FlashInfer-Bench's definitions; workloads become timed cases. See `arena import kernelbench`."""
    from arena.integrations.importers import flashinfer_bench as source

    _import(_Request(path, corpus, task_type, only or (), trust, as_json), lambda: source.find(path), source)


class _Request(NamedTuple):
    """The options that all formats have."""

    checkout: Path
    corpus: Path
    task_type: str
    only: Sequence[str]
    trust: bool
    as_json: bool


def _import(asked: _Request, found: Callable[[], Mapping[Path, str]], source: Format) -> None:
    """Import what `found` lists with a line for each problem, then counts."""
    from arena.errors import UsageError
    from arena.integrations.importers.run import Importer, require_trust
    from arena.integrations.importers.table import IMPORTED, NO_VERDICT
    from arena.task.definition import TaskType

    require_trust(asked.trust, asked.checkout)
    types = [kind.value for kind in TaskType if kind.from_pytorch]
    if asked.task_type not in types:
        raise UsageError(f"--type {asked.task_type}: expected {' or '.join(types)}")
    problems = {
        path: suite
        for path, suite in found().items()
        if not asked.only or any(fnmatch(name, glob) for glob in asked.only for name in (path.name, path.parent.name))
    }
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    importer = Importer(asked.corpus, TaskType(asked.task_type), source)
    with Progress(*columns, console=err, transient=True) as bar, importer:
        line = bar.add_task("problems", total=len(problems))

        def watch(row: ProblemRow) -> None:
            bar.advance(line)
            if not asked.as_json:
                colour = "green" if row.outcome == IMPORTED else "yellow"
                why = ": ".join(filter(None, (row.reason, row.detail)))
                text = f"[{colour}]{row.outcome:<10}[/{colour}] {row.task:<70} {row.seconds:>6} s  {escape(why)}"
                out.print(text, soft_wrap=True, highlight=False)

        rows = importer.run(problems, watch)
    if asked.as_json:
        print_json(rows)
    else:
        _totals(rows, asked.corpus)
    if any(row.outcome == NO_VERDICT for row in rows):
        raise typer.Exit(3)


def _totals(rows: Sequence[ProblemRow], corpus: Path) -> None:
    """A table of counts by suite and reason."""
    from arena.integrations.importers.table import FILE, IMPORTED

    suites = list(dict.fromkeys(row.task.split("/")[1] for row in rows))
    reasons = [reason for reason, _ in Counter(row.reason or row.outcome for row in rows).most_common()]
    shown = Table("suite", "problems", *reasons)
    for suite in suites:
        mine = [row for row in rows if row.task.split("/")[1] == suite]
        counts = Counter(row.reason or row.outcome for row in mine)
        shown.add_row(suite, str(len(mine)), *(str(counts[reason]) for reason in reasons))
    out.print(shown)
    taken = sum(row.outcome == IMPORTED for row in rows)
    out.print(f"{taken} of {len(rows)} problems imported; see {corpus / FILE}", highlight=False, soft_wrap=True)
