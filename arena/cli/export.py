"""`arena export`: results and tasks in the formats of others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli import export_harbor
from arena.cli.console import examples, out
from arena.extras import lacks_extra

PARQUET_EXAMPLES = examples(
    "arena export parquet runs/monday --out monday-data",
    "hf upload me/monday monday-data --repo-type dataset    # the card is in README.md",
)
SUBMISSION_EXAMPLES = examples(
    "arena export submission runs/monday --out submissions",
    "arena verify submissions/hardcoded__no-model --devices all",
    "arena site submissions/hardcoded__no-model submissions/expert__no-model --out site",
)
EXAMPLES = examples(
    "arena export parquet runs/monday --out monday-data",
    "arena export submission runs/monday --out submissions",
    "arena export harbor --help",
)
app = typer.Typer(
    help="Write results and tasks in the formats of others.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode="rich",
)
Run = Annotated[Path, typer.Argument(help="The run folder.", exists=True, file_okay=False)]


@app.command("parquet", epilog=PARQUET_EXAMPLES)
def parquet(
    run: Run,
    out_dir: Annotated[Path, typer.Option("--out", help="Folder of the data set; an earlier export is replaced.")],
) -> None:
    """Write the trials and cases of a run as Parquet files, with a data set card. Needs the extra `export`.

    The files name held-out cases and hold every kernel: what is published is no longer unseen.
    """
    try:
        from arena.integrations.parquet import write_parquet
    except ImportError as problem:
        raise lacks_extra("export", problem) from None
    from arena.runs.submission import read_folder

    out.print(f"data set: {write_parquet(read_folder(run), out_dir)}", highlight=False, soft_wrap=True)


@app.command("submission", epilog=SUBMISSION_EXAMPLES)
def submission(
    run: Run,
    out_dir: Annotated[Path, typer.Option("--out", help="Folder of the submissions; one that exists is refused.")],
) -> None:
    """Write AGENT__MODEL/metadata.yaml with trials, kernels and transcripts, one folder for each agent of a run.

    Each is a run folder of its own, which `arena verify` and `arena site` read.
    """
    from arena.integrations.submissions import write_submissions

    for folder in write_submissions(run, out_dir):
        out.print(f"submission: {folder}", highlight=False, soft_wrap=True)


app.command("harbor", epilog=export_harbor.EXAMPLES)(export_harbor.harbor)
