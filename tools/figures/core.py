"""Choose the core of the corpus, and say how well it stands for the whole. Used by `tools/claims.py`.

Each suite gives as many tasks as its share of the corpus, and of each family at most one. Those that qualify take 20 µs
and more in every timed case, and their expert is surely faster than the baseline; where none of a suite does, all do.
Among them comes first what tells more kernels apart: a measured engine's kernel, wrong kernels of blind authors, and
the distance between baseline and expert; a minute of device time costs a point.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import geometric_mean

from arena.results.record import LONG_MS
from arena.task.corpus.core import FILE, core_tasks
from arena.task.corpus.corpora import load_corpus
from figures import kept

PATH = f"tasks/{FILE}"
TRIALS, CASES = "reports/full-h200/trials.csv", "reports/full-h200/cases.csv"
PRODUCTION, FAULTS = "reports/production-h200.csv", "reports/blind-faults.csv"
SOURCES = (kept.FULL, PRODUCTION, FAULTS)
SIZE = 40
LEAST_HEADROOM = 1.1
_MOST_POINTS = 1.0
"""of the distance between baseline and expert: twice as fast is enough"""
_PAIRS = 20_000
_DIFFERENCES = (0.0, 0.02, 0.05, 0.1, 0.2, math.inf)


@dataclass(frozen=True)
class Known:
    """What the kept records say of one task. `seconds`: of device time for baseline and expert, all cases timed."""

    task: str
    suite: str
    family: str
    expert: float
    surely: float
    least_ms: float
    seconds: float
    engine: float | None
    faults: int
    rejected: int
    """of these faults, by the CPU platform"""

    @property
    def qualifies(self) -> bool:
        """Return whether it is long enough, and has room between baseline and expert."""
        return self.least_ms >= LONG_MS and self.surely >= LEAST_HEADROOM

    @property
    def points(self) -> float:
        """Return what it tells for its cost."""
        told = (self.engine is not None) + (self.faults > 0) + min(_MOST_POINTS, math.log2(self.expert))
        return told - self.seconds / 60


def known_tasks() -> list[Known]:
    """Return what is known of each task of the corpus."""
    trials, blind = kept.rows(TRIALS), kept.rows(FAULTS)
    experts = {row["task"]: row for row in trials if row["agent"] == "expert"}
    seconds, least_ms = defaultdict[str, float](float), dict[str, float]()
    for row in trials:
        seconds[row["task"]] += float(row["seconds"] or 0)
    for row in kept.rows(CASES):
        if row["agent"] == "expert" and row["baseline_ms"]:
            least_ms[row["task"]] = min(float(row["baseline_ms"]), least_ms.get(row["task"], math.inf))
    engines = defaultdict[str, list[float]](list)
    for row in kept.rows(PRODUCTION):
        if row["status"] == "passed" and row["speedup"]:
            engines[row["task"]].append(float(row["speedup"]))
    faults = Counter(row["task"] for row in blind)
    rejected = Counter(row["task"] for row in blind if row["with_cases_added_since"] == "rejected")
    return [
        Known(
            task=task.id,
            suite=task.id.rsplit("/", 1)[0],
            family=task.family,
            expert=float(experts[task.id]["speedup"] or 1),
            surely=float(experts[task.id]["speedup_low"] or 0),
            least_ms=least_ms.get(task.id, 0.0),
            seconds=seconds[task.id],
            engine=geometric_mean(engines[task.id]) if engines[task.id] else None,
            faults=faults[task.id],
            rejected=rejected[task.id],
        )
        for task in load_corpus()
    ]


def chosen() -> list[Known]:
    """Return the tasks of the core, in the order of their ids."""
    every = known_tasks()
    shares = {suite: SIZE * count / len(every) for suite, count in Counter(one.suite for one in every).items()}
    places = {suite: max(1, math.floor(share)) for suite, share in shares.items()}
    for suite in sorted(shares, key=lambda suite: math.floor(shares[suite]) - shares[suite]):
        places[suite] += sum(places.values()) < SIZE
    found: list[Known] = []
    # The smallest suites choose first: they have the fewest families.
    for suite in sorted(places, key=lambda suite: (places[suite], suite)):
        of_suite = [one for one in every if one.suite == suite]
        candidates = [one for one in of_suite if one.qualifies] or of_suite
        for one in sorted(candidates, key=lambda one: (-one.points, one.task)):
            taken = sum(other.suite == suite for other in found)
            if taken < places[suite] and one.family not in {other.family for other in found}:
                found.append(one)
    return sorted(found, key=lambda one: one.task)


def core_file() -> bytes:
    """Return `tasks/CORE.json`."""
    return (json.dumps([one.task for one in chosen()], indent=1) + "\n").encode()


def page() -> str:
    """Return the page that compares the core with the whole."""
    every = known_tasks()
    core = [one for one in every if one.task in core_tasks()]
    experts, experts_of_core = (f"{geometric_mean([one.expert for one in tasks]):.2f}" for tasks in (every, core))
    text = f"""# The core of the corpus

`--tasks core` and `configs/core.yaml` take {len(core)} of {len(every)} tasks, chosen anew with each release. Figures on
the core are compared with figures on the same core alone: its tasks have more room than others.

{_how()}

| what is at hand | whole | core |
| --- | --- | --- |
| tasks | {len(every)} | {len(core)} |
| suites | {len({one.suite for one in every})} | {len({one.suite for one in core})} |
| families | {len({one.family for one in every})} | {len({one.family for one in core})} |
| H200 minutes for baseline and expert, every case timed | {_minutes(every)} | {_minutes(core)} |
| expert / baseline, geometric mean | {experts} | {experts_of_core} |
| engine / baseline, geometric mean over tasks with an engine | {_engines(every)} | {_engines(core)} |
| blind faults that the CPU platform rejects | {_faults(every)} | {_faults(core)} |

## Does it order agents as the whole does?

No agent has run on all tasks, so agents are made up: each has the expert's speed in some tasks, drawn at random, and
the baseline's in the others. Of {_PAIRS:,} pairs of such agents the core orders as the whole does, by how much the
gains of the two differ on the whole:

| difference in gain on the whole | pairs | ordered as by the whole |
| --- | --- | --- |
{_orders(every, core)}

What this cannot show: real agents are not wrong at random. They fail in whole families, and are strong in others, and
the core has one task of a family. Nor does it say whether faults that held-out cases find are as frequent in the core.

## Tasks

| task | family | expert / baseline | engine / baseline | blind faults | minutes |
| --- | --- | --- | --- | --- | --- |
"""
    rows = (
        f"| {one.task} | {one.family} | {one.expert:.2f} | {'–' if one.engine is None else f'{one.engine:.2f}'} "
        f"| {one.faults or '–'} | {one.seconds / 60:.1f} |"
        for one in core
    )
    return text + "\n".join(rows) + "\n"


def _how() -> str:
    return f"""Each suite gives as many as its share, and a family at most one. Timed cases take 20 µs and more, and
the expert is surely {LEAST_HEADROOM} times as fast as the baseline; where no task of a suite is so, any may be taken.
First come those with an engine's kernel, with faults of blind authors, with room between baseline and expert, and of
little cost."""


def _minutes(tasks: Sequence[Known]) -> str:
    return f"{sum(one.seconds for one in tasks) / 60:.0f}"


def _engines(tasks: Sequence[Known]) -> str:
    measured = [one.engine for one in tasks if one.engine is not None]
    return f"{geometric_mean(measured):.2f} ({len(measured)} tasks)"


def _faults(tasks: Sequence[Known]) -> str:
    return f"{sum(one.rejected for one in tasks)} of {sum(one.faults for one in tasks)}"


def _orders(every: Sequence[Known], core: Sequence[Known]) -> str:
    generator, core_names = random.Random(0), {one.task for one in core}
    logs = {one.task: max(0.0, math.log(one.expert)) for one in every}
    counts: Mapping[int, list[bool]] = defaultdict(list)
    for _ in range(_PAIRS):
        of_whole = of_core = 0.0
        first, second = generator.random(), generator.random()
        for task, log in logs.items():
            gained = log * ((generator.random() < first) - (generator.random() < second))
            of_whole += gained / len(every)
            of_core += gained / len(core) if task in core_names else 0.0
        difference = math.expm1(abs(of_whole))
        place = max(at for at, least in enumerate(_DIFFERENCES) if difference >= least)
        counts[place].append(of_whole * of_core > 0)
    return "\n".join(
        f"| {_range(low, high)} | {len(counts[at]):,} | {100 * sum(counts[at]) / len(counts[at]):.0f} % |"
        for at, (low, high) in enumerate(pairwise(_DIFFERENCES))
        if counts[at]
    )


def _range(low: float, high: float) -> str:
    return f"{100 * low:.0f} % and more" if math.isinf(high) else f"{100 * low:.0f} to {100 * high:.0f} %"
