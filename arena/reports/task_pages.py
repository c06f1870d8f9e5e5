"""A page per task: every trial with its cases, the difference of its code, its profile, and its transcript."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from arena.processes.error_line import first_error_line
from arena.processes.printable import write_printable
from arena.reports import formats
from arena.reports.case_frame import case_cells, estimate_of
from arena.reports.code_views import CodeView, code_view
from arena.reports.plain import cut, plain
from arena.reports.rows import TrialRow
from arena.reports.tables import trial_cells
from arena.reports.target_views import Reach, UseView, reach, use_views
from arena.reports.templating import html_engine
from arena.reports.views import CaseView, case_view, page_name, passed, tone
from arena.results.environment import ratio_heading
from arena.results.outcome import ending
from arena.results.profile import CounterTable, KernelTime
from arena.results.record import Split
from arena.runs.records import RunRecords

FOLDER = "tasks"
MOST_CHARACTERS = 8000
_UNNAMED = re.compile(r"[^\w.-]+")


@dataclass(frozen=True)
class TrialView:
    """One trial. `tone` is `good`, `bad` or `none`; `reach`: for which GPUs it builds."""

    anchor: str
    agent: str
    attempt: str
    outcome: str
    tone: str
    speedup: str
    heldout_speedup: str
    seen: str
    heldout: str
    heldout_tone: str
    reach: Reach
    first_line: str
    detail: str
    log: str
    cases: tuple[CaseView, ...]
    uses: tuple[UseView, ...]
    code: CodeView | None
    profile: tuple[KernelTime, ...]
    profile_note: str
    counters: CounterTable | None
    transcript: str


def write_task_pages(runs: Sequence[RunRecords], rows: Sequence[TrialRow], title: str, out: Path) -> list[Path]:
    """Write the page of every task below `out`; those of an earlier report go."""
    folder = out / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("*.*.*.html"):
        stale.unlink()
    paths = {run.info.run: run.path for run in runs}
    by_task: dict[str, list[TrialRow]] = {}
    for row in rows:
        by_task.setdefault(row.task, []).append(row)
    names = sorted(by_task)
    template = html_engine().get_template("task.html.j2")
    files = []
    for place, task in enumerate(names):
        mine = by_task[task]
        several = any(row.attempt > 1 for row in mine)
        trials = [_trial(row, paths[row.run], several) for row in sorted(mine, key=lambda row: row.label)]
        page = template.render(
            title=task,
            report=title,
            trials=trials,
            before=names[place - 1] if place else "",
            after=names[place + 1] if place + 1 < len(names) else "",
            page_name=lambda name: quote(page_name(name)),
            uses=sum(len(trial.uses) for trial in trials),
            targets=any(row.targets for row in rows),
            heading=ratio_heading(mine[0].emulated).capitalize(),
            emulated=formats.EMULATED if mine[0].emulated else "",
        )
        files.append(write_printable(folder / page_name(task), page))
    return files


def _trial(row: TrialRow, run: Path, several: bool) -> TrialView:
    cells = trial_cells(row)
    log = cut(plain(row.compile_log).strip("\n"), MOST_CHARACTERS)
    return TrialView(
        anchor=f"{_UNNAMED.sub('-', row.label)}.{row.attempt}",
        agent=row.label,
        attempt=f"#{row.attempt}" if several else "",
        outcome=ending(row.outcome, row.status),
        tone=tone(row),
        speedup=formats.speedup(estimate_of(cells, "speedup")),
        heldout_speedup=formats.speedup(estimate_of(cells, "heldout_speedup")),
        seen=passed(cells, Split.SEEN),
        heldout=passed(cells, Split.HELDOUT) if row.heldout_ran else formats.NONE,
        heldout_tone=tone(row) if row.heldout_ran else "none",
        reach=reach(row),
        first_line=first_error_line(plain(row.detail)) if row.detail else "",
        detail=plain(row.detail),
        log=log.head + (f"\n… {log.left_out} characters left out …\n{log.tail}" if log.left_out else ""),
        cases=tuple(case_view(case_cells(case.result, case.outcome)) for case in row.cases),
        uses=use_views(row),
        code=code_view(row, run),
        profile=row.profile.kernels if row.profile else (),
        profile_note=" ".join(filter(None, (row.profile.case, row.profile.detail))) if row.profile else "",
        counters=row.profile.counters if row.profile else None,
        transcript=f"../{row.page}" if row.page else "",
    )
