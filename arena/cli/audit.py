"""`arena audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.console import err, examples, out, print_json
from arena.cli.corpora import TasksDirs

EXAMPLES = examples(
    "arena audit runs/monday",
    "arena audit runs/monday --against ~/vllm --against ~/sglang --nearest 5",
    "arena audit runs/monday --verdicts findings/monday.verdicts.yaml   # a file to fill in, which `arena site` shows",
)


def audit(
    run: Annotated[Path, typer.Argument(help="A run folder.", exists=True, file_okay=False)],
    against: Annotated[
        list[Path] | None,
        typer.Option(help="Also compare with the sources in this folder; repeatable.", exists=True, file_okay=False),
    ] = None,
    nearest: Annotated[int, typer.Option(help="Neighbours to show for each kernel.", min=1, max=100)] = 3,
    verdicts: Annotated[
        Path | None, typer.Option(help="Write a new file of verdicts to fill in for kernels without one.")
    ] = None,
    findings: Annotated[Path, typer.Option(help="Folder of your findings, with RUN.verdicts.yaml.")] = Path("findings"),
    out_dir: Annotated[
        Path | None, typer.Option("--out", help="Folder of audit.md and audit.csv; default: reports/NAME-OF-THE-RUN.")
    ] = None,
    tasks_dir: TasksDirs = None,
    as_json: Annotated[bool, typer.Option("--json", help="The kernels as JSON.")] = False,
) -> None:
    """List the nearest neighbours of each kernel: in the corpus, among other submissions, in folders. Compiles nothing.

    RUN.verdicts.yaml says what a person found: clean, reward hack, leak, contaminated, copied, bug. Nothing in or
    beside the run folder is read for that.
    """
    from rich.markup import escape

    from arena.cli.run import REPORTS
    from arena.processes.printable import write_printable
    from arena.reports.audit import NOTE, SourceFolder, audit_frame, audit_run
    from arena.reports.kernel_verdicts import VerdictOnKernel, read_verdicts, verdicts_path, write_template
    from arena.reports.tables import markdown, write_csv
    from arena.runs.submission import read_folder
    from arena.task.corpus.corpora import open_corpora

    records, folders = read_folder(run), [SourceFolder(path) for path in against or ()]
    known, tasks = read_verdicts(verdicts_path(findings, run.resolve().name)), open_corpora(tasks_dir or ()).folders
    with err.status("comparing") as status:
        kernels = audit_run(
            records,
            tasks,
            folders,
            nearest,
            known,
            lambda folder, files: status.update(f"{escape(str(folder.path))}: {files} files"),
        )
    for folder in folders:
        line = f"{folder.path}: {folder.read} files compared, {folder.skipped} skipped (links, too large, no UTF-8)"
        err.print(line, markup=False, highlight=False, soft_wrap=True)
    frame, place = audit_frame(kernels), out_dir or REPORTS / records.info.run
    page = f"# Audit of {records.info.run}\n\n{NOTE}\n\n"
    page += markdown(frame) if kernels else "The run keeps no kernel.\n"
    write_printable(place / "audit.md", page)
    write_csv(frame, place / "audit.csv")
    if verdicts is not None:
        unread = [VerdictOnKernel(one.digest, one.agent, one.task) for one in kernels if not one.verdict]
        write_template(verdicts, unread)
        err.print(f"verdicts to fill in: {verdicts}", markup=False, highlight=False, soft_wrap=True)
    if as_json:
        print_json(kernels)
        return
    out.print(page, markup=False, highlight=False, soft_wrap=True)
    out.print(f"rows: {place / 'audit.csv'}", markup=False, highlight=False, soft_wrap=True)
