"""`arena yardstick`."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arena.cli.console import err, examples, out
from arena.cli.devices import Platform, warn_before
from arena.errors import InfrastructureError, JudgeUnavailable, UsageError
from arena.results.effort import Effort

if TYPE_CHECKING:
    from arena.integrations.yardstick.measuring import Yardstick
    from arena.integrations.yardstick.table import Row

_AT_ONCE = 3
"""kernels: one is measured while others are compiled"""
EXAMPLES = examples(
    "arena yardstick --out production.csv",
    "arena yardstick rms_norm '*/attention/*' --engine vllm --source ~/vllm --source ~/sglang",
    "arena yardstick --source ~/vllm --collect engines    # the files needed, for a machine without the engine",
    "arena yardstick --source engines --out production.csv --seconds 540",
    "arena yardstick rms_norm --source engines --candidates /tmp/candidates",
    "arena yardstick rms_norm --source engines --platform cpu --effort correctness --every-case",
)
SOURCE = typer.Option(
    help="A checkout or folder that holds an engine's package; repeatable. Default: what is installed."
)
COLLECT = typer.Option(help="Copy the engine files that are needed into this folder, and measure nothing.")
CANDIDATES = typer.Option(help="Write the candidates into this folder, and measure nothing.")
EVERY = typer.Option("--every-case", help="Also evaluate the seen cases that are not timed.")


def yardstick(
    tasks: Annotated[list[str] | None, typer.Argument(help="Task ids, bare names or globs; default: all.")] = None,
    engine: Annotated[list[str] | None, typer.Option(help="vllm, sglang, fla or mamba; repeatable.")] = None,
    source: Annotated[list[Path] | None, SOURCE] = None,
    out_file: Annotated[Path, typer.Option("--out", help="CSV file; what it has already is not repeated.")] = Path(
        "production.csv"
    ),
    platform: Platform = "auto",
    effort: Annotated[Effort, typer.Option(help="correctness, screen or full.")] = Effort.FULL,
    every_case: Annotated[bool, EVERY] = False,
    seconds: Annotated[float | None, typer.Option(help="Begin no evaluation after this time.", min=1)] = None,
    collect: Annotated[Path | None, COLLECT] = None,
    candidates: Annotated[Path | None, CANDIDATES] = None,
) -> None:
    """Measure serving engines' own Triton kernels as candidates, on the timed cases of our tasks.

    The kernels are taken from your installation or checkout of vLLM, SGLang, flash-linear-attention or Mamba. The
    table has the speedup over our baseline for each case, and the geometric mean over those that passed.
    """
    from arena.integrations.yardstick.measuring import collect as collect_files

    until = time.monotonic() + seconds if seconds is not None else float("inf")
    chosen = _yardsticks(tasks or [], engine or [], source or [])
    if collect is not None:
        copied = set(collect_files(chosen, collect))
        out.print(f"{len(copied)} files for {len(chosen)} kernels: {collect}", highlight=False, soft_wrap=True)
    if candidates is not None:
        for one in chosen:
            place = candidates / one.engine.name / one.task.id / one.task.task_type.kernel_file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(one.candidate.text, encoding="utf-8")
            out.print(str(place), highlight=False, soft_wrap=True)
    if collect is None and candidates is None:
        _measure(chosen, out_file, platform, effort, every_case=every_case, until=until)


def _yardsticks(tasks: list[str], engines: list[str], sources: list[Path]) -> list[Yardstick]:
    """Make the candidates of all adapters whose engine is there; say what cannot be made."""
    from arena.integrations.yardstick.adapters import find_adapters
    from arena.integrations.yardstick.engines import PACKAGES, find_engine
    from arena.integrations.yardstick.measuring import Yardstick
    from arena.integrations.yardstick.sources import Sources
    from arena.task.corpus.corpora import open_corpora

    for name in engines:
        if name not in PACKAGES:
            raise UsageError(f"--engine {name!r}: expected one of {', '.join(PACKAGES)}")
    adapters, corpora, made = find_adapters(tasks, engines), open_corpora(), []
    found = {name: find_engine(name, sources) for name in {adapter.engine for adapter in adapters}}
    if not any(found.values()):
        raise UsageError(
            f"no engine is here ({', '.join(sorted(found))}): install one, or give its checkout as --source"
        )
    opened = {name: Sources(engine) for name, engine in found.items() if engine}
    for name in sorted(found.keys() - opened.keys()):
        _say(f"{name}: not installed, and in no --source; its kernels are left out")
    for adapter in adapters:
        if adapter.engine not in opened:
            continue
        sources_of = opened[adapter.engine]
        try:
            candidate = adapter.candidate(sources_of)
        except UsageError as problem:
            _say(f"{adapter.task} {adapter.engine}: no candidate: {problem}")
            continue
        made.append(Yardstick(adapter, sources_of.engine, candidate, corpora.load(adapter.task)))
    return made


def _measure(
    chosen: list[Yardstick], out_file: Path, platform: str, effort: Effort, *, every_case: bool, until: float
) -> None:
    """Evaluate what the table does not have, and write it after each."""
    from arena.integrations.yardstick.measuring import CALL_TIMEOUT_S, measure
    from arena.integrations.yardstick.table import has_rows, read_table, replace_rows
    from arena.runs.service import judge_pool
    from arena.task.options import options_of

    options = options_of({"effort": effort, "heldout": False, "call_timeout_s": CALL_TIMEOUT_S})
    rows = read_table(out_file)
    if effort is not Effort.CORRECTNESS:
        warn_before(platform)
    with judge_pool.started(platform, builds=None) as judges:
        device = judges.environment.device.name
        left = [one for one in chosen if not has_rows(rows, digest=one.digest, device=device, effort=str(effort))]

        def evaluate(one: Yardstick) -> list[Row] | None:
            return measure(one, judges, options, every_case=every_case) if time.monotonic() < until else None

        with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
            running = {threads.submit(evaluate, one): one for one in left}
            for done in as_completed(running):
                try:
                    new = done.result()
                except JudgeUnavailable:
                    raise
                except InfrastructureError as problem:
                    _say(f"{running[done].task.id} {running[done].engine.name}: no verdict: {problem}")
                    continue
                if new is not None:
                    rows = replace_rows(out_file, rows, new)
                    left.remove(running[done])
                    _show(new)
    _say(f"table: {out_file}" + (f"; {len(left)} kernels are left: run the same command again" if left else ""))


def _show(rows: list[Row]) -> None:
    """Print the row of the mean, and the first failure."""
    mean = rows[-1]
    line = f"{mean['task']} {mean['engine']} {mean['version']}: {mean['shape']} passed"
    if mean.get("speedup"):
        line += f", {mean['speedup']}× [{mean['speedup_low']}, {mean['speedup_high']}]"
    out.print(line, highlight=False, markup=False, soft_wrap=True)
    for row in rows[:-1]:
        if row["status"] not in ("passed", "not_run"):
            text = f"  {row['case']} {row['shape']}: {row['status']}: {row['detail']}"
            out.print(text, highlight=False, markup=False, soft_wrap=True)


def _say(text: str) -> None:
    err.print(text, markup=False, highlight=False, soft_wrap=True)
