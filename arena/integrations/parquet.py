"""A run as a data set: Parquet files and a card that data set hubs read. Needs the extra `export`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow  # noqa: F401  # pandas writes Parquet with it

from arena.reports.plain import markdown_line
from arena.reports.rows import trial_rows
from arena.reports.tables import cases_frame, trials_frame
from arena.results.record import RunInfo, Trial
from arena.runs.records import RunRecords, submission_folder

TRIALS, CASES, CARD = "trials.parquet", "cases.parquet", "README.md"
_CARD = """---
pretty_name: {name}
tags: [unseen-arena, gpu-kernels]
configs:
- config_name: trials
  data_files: {trials}
- config_name: cases
  data_files: {cases}
---

# {name}

A run of Unseen Arena {version}: agents optimize GPU kernels. A judge measures them on seen and on held-out cases.

| | |
| --- | --- |
| device | {device} |
| tasks | {tasks}, {corpus} |
| agents | {agents} |
| attempts | {attempts} |
| trials recorded | {recorded} of {planned} |
| evaluation | effort {effort}, begun {began} |

`trials` has one row for each planned trial, with the kernel that was handed in. `cases` has one row for each case of
a trial; latencies are in milliseconds. The documentation's page on measures explains the columns.

Held-out cases are named here. Do not use this data set to train an agent that is evaluated on them.
{emulated}"""
_EMULATED = "\nThe speeds are ratios of an emulation on the CPU. They say nothing of a GPU.\n"


def write_parquet(run: RunRecords, out: Path) -> Path:
    """Write the data set of a run, and return its folder.

    Raises:
        RecordError: the run was measured on several devices.
    """
    rows = trial_rows([run])
    out.mkdir(parents=True, exist_ok=True)
    _with_kernels(trials_frame(rows), run).to_parquet(out / TRIALS, index=False, engine="pyarrow")
    cases_frame(rows).to_parquet(out / CASES, index=False, engine="pyarrow")
    (out / CARD).write_text(_card(run), encoding="utf-8")
    return out


def _with_kernels(trials: pd.DataFrame, run: RunRecords) -> pd.DataFrame:
    """Add the model and the text of the kernel to each trial, None where there is none."""
    recorded = {trial.key: trial for trial in run.trials}
    keys = list(zip(trials.agent, trials.task, trials.attempt, strict=True))
    models = [_model(recorded.get(key)) for key in keys]
    kernels = [_kernel(run.path, *key) for key in keys]
    return trials.assign(model=pd.Series(models, dtype="string"), kernel=pd.Series(kernels, dtype="string"))


def _model(trial: Trial | None) -> str | None:
    return (trial.session.model or None) if trial is not None and trial.session is not None else None


def _kernel(run: Path, agent: str, task: str, attempt: int) -> str | None:
    folder = submission_folder(run, agent, task, int(attempt))
    found = sorted(path for path in folder.glob("*") if path.is_file())
    return found[0].read_text(encoding="utf-8", errors="replace") if found else None


def _card(run: RunRecords) -> str:
    info: RunInfo = run.info
    device = info.environment.device
    return _CARD.format(
        name=info.run,
        version=markdown_line(info.arena_version),
        trials=TRIALS,
        cases=CASES,
        device=markdown_line(f"{device.name} ({device.arch})").replace("|", "&#124;"),
        tasks=len(info.tasks),
        corpus=info.corpus or "release unknown",
        agents=", ".join(info.agents),
        attempts=info.attempts,
        recorded=len(run.trials),
        planned=len(info.planned),
        effort=info.effort,
        began=markdown_line(info.started_at).replace("|", "&#124;"),
        emulated=_EMULATED if device.emulated else "",
    )
