"""The generated pages under reports/: how each is made from the records it names. Used by `tools/claims.py`."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import cheat_table
import fault_probes

from arena.integrations.yardstick.table import read_table
from arena.processes.python_child import python_module
from arena.reports import task_quality, task_versions
from arena.results.check import TaskCheck
from arena.runs import records
from arena.task.corpus.corpora import load_corpus
from figures import core, full_run, kept, production, published, suites

FULL_REPORT = kept.REPORTS / "full-h200"
FRONTIER_RUN, FRONTIER_CHECKS = (f"reports/frontier-h200/{name}.tar.xz" for name in ("records", "checks"))
FRONTIER = kept.ROOT / "corpora" / "frontier"
VERSIONS = FULL_REPORT / "versions.json"
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
    return task_quality.gather(load_corpus(), checks, run, task_versions.read_versions(VERSIONS))[0]


def frontier_page() -> str:
    """Return the same page on the tasks of the frontier corpus; what has changed since has no times."""
    tasks, run = load_corpus(FRONTIER), kept.run(FRONTIER_RUN)
    known = {task.content_hash: task_versions.version_of(task) for task in tasks}
    known |= task_versions.read_versions(kept.unpacked(FRONTIER_CHECKS) / "checks" / "versions.json")
    (folder,) = kept.unpacked(FRONTIER_RUN).iterdir()
    rows = task_quality.gather(tasks, kept.unpacked(FRONTIER_CHECKS) / "checks", folder, known)[0]
    text = task_quality.render(rows, run.info.environment.device.name)
    return text.replace("# Quality of the tasks", "# Quality of the frontier tasks", 1)


def versions() -> bytes:
    """Return the file of versions: those of before that evidence still names, and those of tasks that it is about now.

    Which files an old hash stood for cannot be found out any more, so this runs before a task is changed.
    """
    run = kept.run(kept.FULL)
    checks = (records.read(path, TaskCheck) for path in (kept.unpacked(kept.CHECKS) / "checks" / "cpu").rglob("*.json"))
    named = {trial.task_hash for trial in run.trials} | {check.task_hash for check in checks}
    known = task_versions.read_versions(VERSIONS) if VERSIONS.is_file() else {}
    known |= {task.content_hash: task_versions.version_of(task) for task in load_corpus()}
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
