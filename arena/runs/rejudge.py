"""Judge the kernels of a recorded run again: an ordinary run of `replay` agents over some of its trials.

A record may come from anybody: names of trials and kernels are taken from it, and nothing else. Held-out cases are the
task's own, followed by a fresh private draw. `arena verify` compares the records.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from arena.agents import make_agent
from arena.agents.base import AgentSpec
from arena.errors import UsageError
from arena.results.record import SCHEMA_VERSION, Trial
from arena.runs import records
from arena.runs.config import RunConfig
from arena.runs.private_draw import passing, work_limit
from arena.runs.runner import RunPlan, TrialKey
from arena.runs.service.judge_pool import JudgePool
from arena.runs.sharing import share_out
from arena.runs.submission import SUBMISSIONS, records_hash
from arena.task.corpus.corpora import Corpora
from arena.task.corpus.sampling import sample_cases, to_yaml
from arena.task.corpus.selection import select
from arena.task.corpus.task_folder import HELDOUT
from arena.task.definition import Task
from arena.task.options import Options

CHOICE = "selection.json"
REJUDGED = "run"
_DRAWS = "heldout"
_SEED_BITS = 63


@dataclass(frozen=True)
class Asked:
    """The trials to judge again: all that fit the names, or `trials` of them drawn at random."""

    trials: int | None = None
    tasks: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    seed: int | None = None
    private_cases: int = 8


@dataclass(frozen=True)
class TrialSelection:
    """The trials that were chosen, and the seed of the private draw; kept so that a verification can be resumed."""

    asked: Asked
    records_hash: str
    selection_seed: int | None
    draw_seed: int
    trials: tuple[TrialKey, ...]
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class Rejudging:
    """A planned verification: the run to do, its folder, and the tasks without private cases."""

    plan: RunPlan
    folder: Path
    choice: TrialSelection
    tasks: Mapping[str, Task]
    """as they are in the corpus, with their own held-out cases"""
    planned: Mapping[str, Task]
    """every task of the recorded run that the corpus has"""
    notes: tuple[str, ...]


def verifiable(run: records.RunRecords) -> tuple[Trial, ...]:
    """Return the trials of a run in which a kernel was handed in and judged."""
    return tuple(trial for trial in run.trials if trial.evaluation is not None)


def chosen(run: records.RunRecords, asked: Asked, out: Path) -> TrialSelection:
    """Choose the trials to judge again, or read the choice of a verification that is being resumed.

    Raises:
        UsageError: no trial fits, or the folder holds another verification.
    """
    digest = records_hash(run.path)
    path = out / CHOICE
    if path.is_file():
        old = records.read(path, TrialSelection)
        if (old.asked, old.records_hash) != (asked, digest):
            raise UsageError(f"{out} holds a verification of other trials or records; give another folder with --out")
        return old
    agents = asked.agents or run.info.agents
    if unknown := set(agents) - set(run.info.agents):
        raise UsageError(f"no agent {sorted(unknown)[0]!r} in this run; it has {', '.join(run.info.agents)}")
    tasks = select(tuple(dict.fromkeys(run.info.tasks)), asked.tasks or ["*"])
    keys = [trial.key for trial in verifiable(run) if trial.agent in agents and trial.task in tasks]
    if not keys:
        raise UsageError(f"{run.path}: no trial with a kernel to judge again among those asked for")
    seed = None
    if asked.trials is not None and asked.trials < len(keys):
        seed = asked.seed if asked.seed is not None else secrets.randbits(_SEED_BITS)
        places = sorted(random.Random(seed).sample(range(len(keys)), asked.trials))
        keys = [keys[place] for place in places]
    choice = TrialSelection(asked, digest, seed, secrets.randbits(_SEED_BITS), tuple(keys))
    records.write(path, choice)
    return choice


def prepare(
    run: records.RunRecords,
    choice: TrialSelection,
    corpora: Corpora,
    out: Path,
    judges: JudgePool,
    options: Options | None = None,
    noted: Callable[[str], None] = lambda text: None,
) -> Rejudging:
    """Draw the private cases, and plan the run that judges the chosen trials again.

    Args:
        run: the records; nothing of their options is taken.
        choice: the trials.
        corpora: where the tasks are.
        out: the folder of the verification.
        judges: who judge.
        options: the verifier's; None: the defaults.
        noted: is told how far it is.

    Raises:
        UsageError: a task of the run is not in the corpus, or an agent's kernels are not in the run folder.
        InfrastructureError: a judge failed while it checked the baseline on private cases.
    """
    options = structs.replace(options or Options(), heldout=True)
    keys, drawn = choice.trials, out / _DRAWS
    tasks = {name: _task(corpora, name) for name in dict.fromkeys(key[1] for key in keys)}
    agents = tuple(dict.fromkeys(key[0] for key in keys))
    specs = [AgentSpec(name, "replay", folder=run.path.resolve() / SUBMISSIONS / name) for name in agents]
    replays = {spec.name: make_agent(spec) for spec in specs}
    draw = _Draw(choice, options, judges)
    missing = [task for task in tasks.values() if not (drawn / task.id / HELDOUT).is_file()]
    if missing:
        noted(f"private held-out cases to draw, and to check with the baselines of {len(missing)} tasks")
    places = range(len(judges.environments))
    texts = share_out(missing, places, lambda task, _: (task, draw.text(task)), lambda _: judges.cancel())
    for done, (task, text) in enumerate(texts, 1):
        records.write_bytes(drawn / task.id / HELDOUT, text.encode())
        noted(f"private held-out cases drawn: {done} of {len(missing)} tasks")
    with_draws = {name: corpora.load(name, drawn / name / HELDOUT) for name in tasks}
    config = RunConfig(
        name=f"{run.info.run}.verification",
        tasks=tuple(tasks),
        agents=tuple(specs),
        platform=judges.environment.device.platform,
        attempts=max(key[2] for key in keys),
        heldout=drawn,
        path="arena verify",
    )
    plan = RunPlan(config, with_draws, replays, options, keys)
    asked = choice.asked.private_cases
    fewer = {name: len(with_draws[name].heldout) - len(task.heldout) for name, task in tasks.items()}
    notes = [f"{name}: {count} of {asked} private cases" for name, count in fewer.items() if count < asked]
    planned = {name: tasks.get(name) or corpora.load(name) for name in run.info.tasks if name in corpora.folders}
    return Rejudging(plan, out / REJUDGED, choice, tasks, planned, tuple(notes))


def _task(corpora: Corpora, name: str) -> Task:
    if name not in corpora.folders:
        raise UsageError(f"{name} is not in this corpus: name its folder with --tasks-dir, or exclude it with --tasks")
    return corpora.load(name)


@dataclass(frozen=True)
class _Draw:
    """Writes files of held-out cases: the task's own, followed by private ones that the baseline passes."""

    choice: TrialSelection
    options: Options
    judges: JudgePool

    def text(self, task: Task) -> str:
        """Return the file's text; without private cases where the domain has too few."""
        own = (task.path / HELDOUT).read_text(encoding="utf-8").rstrip() + "\n"
        wanted = self.choice.asked.private_cases
        if not wanted:
            return own
        try:
            cases = sample_cases(task, wanted, self.choice.draw_seed, work_limit(self.options, self.judges))
        except UsageError:
            return own
        return own + to_yaml(passing(task, cases, self.judges, self.options, own))
