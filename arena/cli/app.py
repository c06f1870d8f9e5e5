"""The command tree. Each command lives in a module of its own and imports what it needs when it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import arena
from arena.cli import (
    Interrupted,
    Unforeseen,
    agents,
    audit,
    capture,
    clean,
    compare,
    doctor,
    evaluate,
    explain,
    export,
    heldout,
    import_tasks,
    mcp,
    openreward,
    portability,
    regrade,
    report,
    run,
    runs,
    serve,
    site,
    tasks,
    transcript,
    verify,
    yardstick,
)
from arena.cli.console import examples

_EPILOG = f"""
{examples("arena doctor --quick", "arena run quickstart", "arena evaluate rms_norm kernel.py")}

Exit codes: 0 done; 1 the thing asked about failed; 2 usage or configuration; 3 no verdict (infrastructure)
or an internal error; 130 interrupted; 141 the reader of the output has gone.
"""


class _Commands(TyperGroup):
    """Commands that let every exception reach `main`. Typer alone ends silently, with 1 for a broken pipe."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the command line, as any group does; a help text may find that nobody reads it."""
        with _past_typer():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; raises `Interrupted` for Ctrl-C."""
        with _past_typer():
            return super().invoke(ctx)


@contextmanager
def _past_typer() -> Iterator[None]:
    """Replace the exceptions that Typer takes for its own."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None
    except (BrokenPipeError, EOFError) as problem:
        raise Unforeseen(problem) from problem


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"arena {arena.__version__}")
        raise typer.Exit


app = typer.Typer(
    name="arena",
    cls=_Commands,
    help="Measure how well AI coding agents optimise GPU kernels, and whether their kernels survive unseen shapes.",
    epilog=_EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    pass


app.command("run", epilog=run.EXAMPLES)(run.run)
app.command("runs", epilog=runs.EXAMPLES)(runs.runs)
app.command("evaluate", epilog=evaluate.EXAMPLES)(evaluate.evaluate)
app.command("explain", epilog=explain.EXAMPLES)(explain.explain)
app.command("serve", epilog=serve.EXAMPLES)(serve.serve)
app.command("report", epilog=report.EXAMPLES)(report.report)
app.command("compare", epilog=compare.EXAMPLES)(compare.compare)
app.command("portability", epilog=portability.EXAMPLES)(portability.portability)
app.command("regrade", epilog=regrade.EXAMPLES)(regrade.regrade)
app.command("audit", epilog=audit.EXAMPLES)(audit.audit)
app.command("capture", epilog=capture.EXAMPLES, context_settings=capture.CONTEXT)(capture.capture)
app.command("verify", epilog=verify.EXAMPLES)(verify.verify)
app.command("site", epilog=site.EXAMPLES)(site.site)
app.command("mcp", epilog=mcp.EXAMPLES)(mcp.mcp)
app.command("openreward", epilog=openreward.EXAMPLES)(openreward.openreward)
app.add_typer(export.app, name="export")
app.command("transcript", epilog=transcript.EXAMPLES)(transcript.transcript)
app.add_typer(tasks.app, name="tasks")
app.add_typer(heldout.app, name="heldout")
app.add_typer(import_tasks.app, name="import")
app.add_typer(agents.app, name="agents")
app.command("yardstick", epilog=yardstick.EXAMPLES)(yardstick.yardstick)
app.command("doctor", epilog=doctor.EXAMPLES)(doctor.doctor)
app.command("clean", epilog=clean.EXAMPLES)(clean.clean)
