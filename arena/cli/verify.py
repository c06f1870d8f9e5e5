"""`arena verify`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arena.cli import Interrupted
from arena.cli.console import err, examples, out, print_json
from arena.cli.corpora import TasksDirs
from arena.cli.devices import DEVICES, Platform, chosen_devices
from arena.cli.options import chosen_options, takes_options
from arena.errors import UsageError
from arena.task.options import RUN

if TYPE_CHECKING:
    from arena.results.verification import Verification
    from arena.runs.records import RunRecords
    from arena.runs.rejudge import TrialSelection
    from arena.task.options import Options

EXAMPLES = examples(
    "arena verify runs/quickstart --platform cpu",
    "arena verify submissions/monday --trials 40 --seed 1 --devices all   # forty trials drawn at random",
    "arena verify submissions/monday --tasks 'hip2hip/*' --agents codex --out checked",
)
OPTIONS = ("seeds", "max_work", "max_held", "call_timeout_s", "timing_budget_s", "graphs", "host_memory_bytes")


@takes_options(RUN, names=OPTIONS)
def verify(
    run: Annotated[Path, typer.Argument(help="The run folder to verify.", exists=True, file_okay=False)],
    trials: Annotated[
        int | None, typer.Option(help="Judge this many trials, drawn at random; default: all.", min=1)
    ] = None,
    tasks: Annotated[list[str] | None, typer.Option(help="Only trials of these task ids or globs.")] = None,
    agents: Annotated[list[str] | None, typer.Option(help="Only trials of these agents.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the choice of trials; default: a random one.")] = None,
    private_cases: Annotated[
        int, typer.Option(help="Private held-out cases per task, drawn for this verification; 0: none.", min=0)
    ] = 8,
    out_dir: Annotated[Path | None, typer.Option("--out", help="Output folder; default: findings/RUN.")] = None,
    platform: Platform = "auto",
    devices: Annotated[str, DEVICES] = "",
    tasks_dir: TasksDirs = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print verification.json in place of the table.")] = False,
    *,
    given: dict[str, Any],
) -> None:
    """Judge the kernels of a run again, and say for each figure of its records whether it is reproduced.

    The records are claims: cases, options and the release are those of this command, and nothing that the run says.

    Each kernel is also judged on held-out cases drawn for this verification. The same command resumes an interrupted
    verification. The output folder has verification.json, judged.json with the figures that boards show, and in
    `run` the records of the trials judged again.

    Exit code 0: every figure that could be decided is reproduced; 1: some figure is not; 2: usage; 3: no verdict,
    since the harness failed in a trial or no figure of an unchanged task could be decided.
    """
    from arena.cli.verify_render import show
    from arena.results.verification import FILE
    from arena.runs.rejudge import Asked, chosen
    from arena.runs.submission import read_submission

    options = chosen_options(given, RUN)
    recorded = read_submission(run)
    target = out_dir or Path("findings", run.resolve().name)
    if target.resolve().is_relative_to(run.resolve()):
        raise UsageError(f"--out {target}: give a folder outside of the run, which is not changed")
    asked = Asked(trials, tuple(tasks or ()), tuple(agents or ()), seed, private_cases)
    choice = chosen(recorded, asked, target)
    verification = _verified(recorded, choice, target, tuple(tasks_dir or ()), (platform, devices), options)
    if as_json:
        print_json(verification)
    else:
        show(verification)
        out.print(f"verification: {target / FILE}", highlight=False, soft_wrap=True)
    code = _exit_code(verification)
    if code:
        raise typer.Exit(code)


def _verified(
    recorded: RunRecords,
    choice: TrialSelection,
    target: Path,
    corpora: tuple[Path, ...],
    where: tuple[str, str],
    options: Options,
) -> Verification:
    """Judge again what is missing, compare, and write the file."""
    from arena.cli.progress import RunDisplay
    from arena.reports.reproduction import judged_here, verification
    from arena.results.verification import FILE, JUDGED_FILE
    from arena.runs import rejudge, runner
    from arena.runs.records import write
    from arena.runs.service.judge_pool import started
    from arena.task.corpus.corpora import open_corpora

    platform, devices = where
    corpus = open_corpora(corpora)
    err.print(f"{len(choice.trials)} trials to judge again; starting a judge, platform {platform}", highlight=False)
    try:
        with RunDisplay(err) as display, started(platform, chosen_devices(devices)) as judges:
            rejudging = rejudge.prepare(recorded, choice, corpus, target, judges, options, display.noted)
            repeated = runner.run(rejudging.plan, rejudging.folder, judges, display)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted: `{shlex.join(['arena', *sys.argv[1:]])}` resumes") from None
    compared = verification(recorded, repeated, rejudging)
    write(target / JUDGED_FILE, judged_here(repeated, rejudging))
    write(target / FILE, compared)
    return compared


def _exit_code(verification: Verification) -> int:
    from arena.results.verification import Reproduction

    counts = verification.counts(task_changed=False)
    if counts[Reproduction.NOT_REPRODUCED]:
        return 1
    broken = any(trial.no_verdict for trial in verification.trials)
    return 3 if broken or not counts[Reproduction.REPRODUCED] else 0
