"""A run as submissions in the layout of other leaderboards: AGENT__MODEL/metadata.yaml beside the trials."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import yaml

from arena.errors import UsageError
from arena.results.record import Trial
from arena.results.transcripts import transcript_path
from arena.runs import records
from arena.runs.records import RunRecords, submission_folder
from arena.runs.submission import read_submission

METADATA = "metadata.yaml"
NO_MODEL, SEVERAL_MODELS = "no-model", "several-models"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def write_submissions(run: Path, out: Path) -> list[Path]:
    """Write one folder for each agent of a run, and return them.

    Each is a run folder with records, kernels and transcripts of this agent. Its run has a name of its own, since a
    site has one run of each name.

    Raises:
        RecordError: the folder is no run, or holds what no run holds.
        UsageError: a folder of this name exists, or the run has no record.
    """
    recorded = read_submission(run)
    if not recorded.trials:
        raise UsageError(f"{run}: no trial is recorded")
    by_agent: dict[str, list[Trial]] = {}
    for trial in recorded.trials:
        by_agent.setdefault(trial.agent, []).append(trial)
    folders = {agent: out / _name(agent, _models(trials)) for agent, trials in by_agent.items()}
    taken = [folder for folder in folders.values() if folder.exists()]
    if taken:
        raise UsageError(f"{taken[0]} exists; remove it, or give another --out")
    return [_write(recorded, agent, trials, folders[agent]) for agent, trials in by_agent.items()]


def _write(run: RunRecords, agent: str, trials: list[Trial], folder: Path) -> Path:
    name = f"{run.info.run}.{folder.name}"
    planned = tuple(key for key in run.info.planned if key[0] == agent)
    records.write_head(folder, replace(run.info, run=name, agents=(agent,), selected=planned))
    for trial in trials:
        records.write_trial(folder, replace(trial, run=name))
        for place in (submission_folder, transcript_path):
            if (source := place(run.path, *trial.key)).is_dir():
                shutil.copytree(source, place(folder, *trial.key))
    metadata = yaml.safe_dump(_metadata(run, agent, trials), sort_keys=False, allow_unicode=True)
    records.write_bytes(folder / METADATA, metadata.encode())
    return read_submission(folder).path


def _metadata(run: RunRecords, agent: str, trials: list[Trial]) -> dict[str, object]:
    info, device = run.info, run.info.environment.device
    versions = sorted({trial.session.version for trial in trials if trial.session and trial.session.version})
    return {
        "agent_display_name": agent,
        "agent_version": ", ".join(versions) or None,
        "models": [{"model_name": model} for model in _models(trials)],
        "benchmark": "unseen-arena",
        "arena_version": info.arena_version,
        "corpus": str(info.corpus) if info.corpus else None,
        "device": f"{device.name} ({device.arch})",
        "emulated": device.emulated,
        "effort": str(info.effort),
        "run": info.run,
        "started_at": info.started_at,
        "tasks": len({task for _, task, _ in info.planned}),
        "attempts": info.attempts,
        "trials": len(trials),
    }


def _models(trials: list[Trial]) -> list[str]:
    return sorted({trial.session.model for trial in trials if trial.session and trial.session.model})


def _name(agent: str, models: list[str]) -> str:
    model = NO_MODEL if not models else models[0] if len(models) == 1 else SEVERAL_MODELS
    return f"{agent}__{_UNSAFE.sub('-', model)}"
