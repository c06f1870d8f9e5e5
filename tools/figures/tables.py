"""The generated pages under reports/: how each is made from the records it names. Used by `tools/claims.py`."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import cheat_table
import fault_probes

from arena.integrations.yardstick.table import read_table
from arena.processes.python_child import python_module
from arena.reports import task_quality, task_versions
from arena.reports.task_versions import TaskVersion
from arena.results.check import TaskCheck
from arena.results.outcome import Outcome, outcome_of_trial
from arena.runs import records
from arena.task.corpus.corpora import load_corpus
from arena.task.definition import Task
from figures import channels, core, full_run, kept, production, published, speed_of_light, suites

FULL_REPORT = kept.REPORTS / "full-h200"
FRONTIER_RUN, FRONTIER_CHECKS = (f"reports/frontier-h200/{name}.tar.xz" for name in ("records", "checks"))
FRONTIER = kept.ROOT / "corpora" / "frontier"
HARD = kept.ROOT / "corpora" / "kernelbench_hard"
PUBLISHED_VERSIONS = kept.REPORTS / "published-kernels" / "versions.json"
"""of each task that some kept evidence is about"""
NOT_KEPT = ("index.html", "tasks")
"""parts of a report that are not committed"""
_PRODUCTION, _STREAMS = "reports/production-h200.csv", "reports/stream-h200.csv"


class Table(NamedTuple):
    """A page that is made from records; `text` is without the head that names them."""

    sources: Sequence[str]
    text: Callable[[], str]

    def page(self) -> str:
        """Return the whole page."""
        return kept.headed(self.text(), self.sources)


def production_page() -> str:
    """Return the comparison of baselines with engines' kernels."""
    return production.page(read_table(production.MEASURED)) + "\n"


def suites_page() -> str:
    """Return the comparison by suite."""
    times = [line for path in kept.TIMES for line in kept.lines(path)]
    return suites.kept_page(kept.lines("reports/full-h200/cases.csv"), times)


def quality() -> Sequence[task_quality.Checks]:
    """Return what the kept checks and the kept run say of each task as it is."""
    checks, (run,) = kept.unpacked(kept.CHECKS) / "checks", kept.unpacked(kept.FULL).iterdir()
    return task_quality.gather(load_corpus(), checks, run, task_versions.read_versions(kept.VERSIONS))[0]


def frontier_page() -> str:
    """Return the same page on the tasks of the frontier corpus; what has changed since has no times."""
    tasks, run = load_corpus(FRONTIER), kept.run(FRONTIER_RUN)
    known = frontier_versions(tasks)
    (folder,) = kept.unpacked(FRONTIER_RUN).iterdir()
    rows = task_quality.gather(tasks, kept.unpacked(FRONTIER_CHECKS) / "checks", folder, known)[0]
    text = task_quality.render(rows, run.info.environment.device.name)
    return text.replace("# Quality of the tasks", "# Quality of the frontier tasks", 1)


def frontier_versions(tasks: Iterable[Task]) -> dict[str, TaskVersion]:
    """Return the tasks of the frontier corpus as they are and as they were, by content hash."""
    known = {task.content_hash: task_versions.version_of(task) for task in tasks}
    return known | task_versions.read_versions(kept.unpacked(FRONTIER_CHECKS) / "checks" / "versions.json")


@cache
def speed_of_light_groups() -> Sequence[speed_of_light.Group]:
    """Return the tasks of each corpus with all that was timed on an H200."""
    run, front, (judged, kernels) = kept.run(kept.FULL), kept.run(FRONTIER_RUN), published.judged()
    facts = run.info.environment.device
    if any(other.info.environment.device != facts for other in (front, judged)):
        raise ValueError("speed of light: the records are of several devices; expected one")
    frontier, hard = load_corpus(FRONTIER), load_corpus(HARD)
    names = {(one.agent, one.task, one.attempt): one.row for one in kernels}
    agents = speed_of_light.Published(judged.trials, names)
    known = [
        frontier_versions(frontier),
        *(task_versions.read_versions(file) for file in (PUBLISHED_VERSIONS, kept.VERSIONS)),
    ]
    return [
        speed_of_light.Group("corpora/frontier", speed_of_light.gathered(frontier, facts, known[0], front.trials)),
        speed_of_light.Group(
            "corpora/kernelbench_hard", speed_of_light.gathered(hard, facts, known[1], published=agents)
        ),
        speed_of_light.Group(
            "tasks",
            speed_of_light.gathered(
                load_corpus(), facts, known[2], run.trials, engines=read_table(production.MEASURED)
            ),
            whole=False,
        ),
    ]


def speed_of_light_page() -> str:
    """Return the page of all kernels beside the bounds of their tasks."""
    judged = published.judged()[0]
    old, now = task_versions.read_versions(PUBLISHED_VERSIONS), {task.id: task for task in load_corpus(HARD)}
    cases = {name: set(task_versions.version_of(task).cases) for name, task in now.items()}
    short = [len(cases[trial.task] - set(old[trial.task_hash].cases)) for trial in judged.trials]
    groups = speed_of_light_groups()
    differ = speed_of_light.sessions_differ(groups[-1].tasks, read_table(production.MEASURED))
    solved = sum(outcome_of_trial(trial) is Outcome.SOLVED for trial in judged.trials)
    median, most = (f"{100 * value:.1f} %" for value in (statistics.median(differ), differ[-1]))
    notes = [
        f"{len(judged.trials)} published kernels were judged. {solved} are right on every case with valid timings, and "
        "the fastest of these is shown.",
        f"Cases of their tasks were added since: {sum(n > 0 for n in short)} of these kernels have not met up to "
        f"{max(short)} of them.",
        "Experts of `kernelbench_hard` were not timed on an H200. Frontier tasks have no engine's kernel.",
        "Engines' kernels were timed in sessions of their own, each beside the baseline. Its latency there differs "
        f"from that of the run by {median} in the median and by {most} at most, over {len(differ)} tasks.",
        "Records of engines do not name the version of the task. They count on the same shape, where records of the "
        "run hold.",
    ]
    return speed_of_light.page(groups, kept.run(kept.FULL).info.environment.device, notes)


def versions() -> bytes:
    """Return the file of versions: those of before that evidence still names, and those of tasks that it is about now.

    Which files an old hash stood for cannot be found out any more, so this runs before a task is changed.
    """
    run = kept.run(kept.FULL)
    checks = (records.read(path, TaskCheck) for path in (kept.unpacked(kept.CHECKS) / "checks" / "cpu").rglob("*.json"))
    named = {trial.task_hash for trial in (*run.trials, *full_run.correctness_trials())}
    tasks = [task for folder in full_run.CORPORA for task in load_corpus(folder)]
    return _versions(kept.VERSIONS, tasks, named | {check.task_hash for check in checks})


def published_versions() -> bytes:
    """Return the same for the tasks that published kernels were judged for."""
    named = {trial.task_hash for trial in published.judged()[0].trials}
    return _versions(PUBLISHED_VERSIONS, load_corpus(HARD), named)


def _versions(file: Path, tasks: Iterable[Task], named: Container[str]) -> bytes:
    known = task_versions.read_versions(file) if file.is_file() else {}
    known |= {task.content_hash: task_versions.version_of(task) for task in tasks}
    return task_versions.written({name: version for name, version in known.items() if name in named})


def task_quality_page() -> str:
    """Return the page on the quality of the tasks."""
    return task_quality.render(quality(), kept.run(kept.FULL).info.environment.device.name)


TABLES = {
    "reports/tables/production.md": Table([_PRODUCTION], production_page),
    "reports/tables/suites.md": Table([kept.FULL, _PRODUCTION, _STREAMS, *kept.TIMES], suites_page),
    "reports/tables/task-quality.md": Table([kept.CHECKS, kept.FULL], task_quality_page),
    "reports/tables/core.md": Table(core.SOURCES, core.page),
    "reports/tables/frontier.md": Table([FRONTIER_CHECKS, FRONTIER_RUN], frontier_page),
    "reports/tables/cheats.md": Table(cheat_table.SOURCES, cheat_table.page),
    "reports/tables/fault-probes.md": Table(["reports/fault-probes.json"], fault_probes.kept_page),
    "reports/tables/published-h200.md": Table([published.RECORDS], published.page),
    "reports/tables/speed-of-light.md": Table(
        [FRONTIER_RUN, published.RECORDS, kept.FULL, _PRODUCTION], speed_of_light_page
    ),
    "reports/tables/channels.md": Table([channels.RECORD], channels.page),
    "reports/tables/noisy-credit.md": Table([kept.FULL], lambda: full_run.credit_page(kept.run(kept.FULL))),
}


def report() -> Iterator[tuple[str, bytes]]:
    """Yield each file of the kept run's report as `arena report` writes it now: path below the folder, and bytes."""
    with tempfile.TemporaryDirectory() as folder:
        runs, made = Path(folder) / "runs", Path(folder) / "made"
        runs.symlink_to(kept.unpacked(kept.FULL))
        command = python_module("arena", "report", "runs/full", "--out", str(made))
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        for file in sorted(made.rglob("*")):
            path = file.relative_to(made)
            if file.is_file() and path.parts[0] not in NOT_KEPT:
                text = file.read_bytes()
                yield path.as_posix(), _headed(text) if path.name == "summary.md" else text


def _headed(summary: bytes) -> bytes:
    return kept.headed(summary.decode(), [kept.FULL]).encode()
