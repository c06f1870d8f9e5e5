"""`arena agents`."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from arena.cli.console import err, examples, out, print_json
from arena.cli.devices import Platform

EXAMPLES = examples(
    "arena agents                       # which agents there are, and whether each can start here",
    "arena agents --json",
    "arena agents try claude_code       # one small task, a few evaluations",
    "arena agents try ./my_agent.yaml --task rms_norm --model my-model --minutes 20",
)
_TASK = "triton2triton/normalization/rms_norm"
_WORK = 1e6
_NEWER = "newer than the version that was tried: its options and its output may differ"

app = typer.Typer(
    help="List agents and whether each can start here; try one.", epilog=EXAMPLES, rich_markup_mode="rich"
)


@app.callback(invoke_without_command=True)
def agents(context: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the kinds of agent that a run configuration can name, and whether each can start here."""
    if context.invoked_subcommand is not None:
        return
    rows = _rows()
    if as_json:
        print_json(rows)
        return
    table = Table("kind", "can start", "version", "what it is, and what it lacks")
    for row in rows:
        lacks = f"\n[yellow]{escape(row['lacks'])}[/yellow]" if row["lacks"] else ""
        tried = f"\n[dim]tried: {escape(row['tried'])}[/dim]" if row["tried"] else ""
        colour = "red" if row["lacks"] else "green"
        word = "no" if row["lacks"] else "yes"
        remark = f"\n[yellow]{row['remark']}[/yellow]" if row["remark"] else ""
        about = escape(row["about"]) + remark + lacks
        table.add_row(row["kind"], f"[{colour}]{word}[/]", escape(row["version"]) + tried, about)
    out.print(table)


def _rows() -> list[dict[str, str]]:
    from arena.agents import kinds
    from arena.agents.availability import find_availability
    from arena.agents.chat import definition as chat
    from arena.agents.tried import newer_than_tried, shipped_definitions

    nothing = {"version": "", "tried": "", "lacks": "", "remark": ""}
    rows = [{"kind": kind, "about": about, **nothing} for kind, about in kinds().items()]
    version = chat.library_version()
    library = f"{chat.LIBRARY} {version}" if version else ""
    for model in chat.load_models().values():
        facts = {**nothing, "version": library, "lacks": chat.lacks(model, os.environ)}
        rows.append({"kind": model.name, "about": model.about, **facts})
    for definition in shipped_definitions().values():
        found = find_availability(definition)
        newer = newer_than_tried(found.version, definition.tried)
        facts = {"version": found.version, "tried": definition.tried, "lacks": found.lacks(definition)}
        rows.append({"kind": definition.name, "about": definition.about, **facts, "remark": _NEWER if newer else ""})
    return rows


@app.command("try", epilog=EXAMPLES)
def try_agent(
    kind: Annotated[str, typer.Argument(help="A kind that `arena agents` lists, or the file of a definition.")],
    task: Annotated[str, typer.Option(help="Task id or bare name.")] = _TASK,
    model: Annotated[str, typer.Option(help="Model, for agents that can choose one.")] = "",
    platform: Platform = "auto",
    minutes: Annotated[float, typer.Option(help="Wall-clock limit.", min=0.05)] = 10.0,
    evaluations: Annotated[int, typer.Option(help="Limit on calls of ./evaluate.", min=0)] = 5,
    runs_dir: Annotated[Path, typer.Option(help="Folder for the run folder.")] = Path("runs"),
) -> None:
    """Let an agent work on one small task, and show its result. Exit code 1 if its submission is not solved."""
    from arena.agents.base import AgentSpec
    from arena.cli.progress import RunDisplay
    from arena.results.outcome import Outcome, ending, outcome_of_trial
    from arena.results.transcripts import find_transcripts
    from arena.runs import runner
    from arena.runs.config import RunConfig
    from arena.runs.service.judge_pool import started

    path = Path(kind)
    name = path.stem if path.suffix == ".yaml" else kind
    limits = {"wall_clock_s": minutes * 60, "evaluations": evaluations}
    agent = AgentSpec(name, str(path.resolve()) if path.suffix == ".yaml" else kind, model=model, limits=limits)
    config = RunConfig(
        name=f"try-{name}-{datetime.now():%Y%m%d-%H%M%S}",
        tasks=(task,),
        agents=(agent,),
        attempts=1,
        evaluation={"max_work": _WORK} if platform == "cpu" else {},
    )
    plan = runner.plan_run(config)
    folder = runs_dir / config.name
    with started(platform, builds=True) as judges, RunDisplay(err) as display:
        (trial,) = runner.run(plan, folder, judges, display).trials
    if trial.session is not None:
        session = trial.session
        out.print(
            f"{session.ending}{': ' if session.detail else ''}{session.detail} after {session.active_s:.0f} s, "
            f"{len(session.evaluations)} evaluations, {session.tokens.total} tokens, {session.cost_usd:.2f} US dollars",
            markup=False,
        )
    outcome = outcome_of_trial(trial)
    told = ending(outcome, trial.status)
    out.print(f"{told}{': ' if trial.detail else ''}{trial.detail}", markup=False)
    if find_transcripts(folder):
        out.print(f"arena transcript {folder}/{name}/{trial.task}", markup=False)
    if not outcome.solves:
        raise typer.Exit(3 if outcome is Outcome.NO_VERDICT else 1)
