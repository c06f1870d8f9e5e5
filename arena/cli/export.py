"""`arena export`: tasks and runs in other projects' formats."""

from __future__ import annotations

import typer

from arena.cli import export_harbor

app = typer.Typer(no_args_is_help=True, help="Write tasks and runs in other projects' formats.")
app.command("harbor", epilog=export_harbor.EXAMPLES)(export_harbor.harbor)
