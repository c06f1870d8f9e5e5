"""Count which published kernels survive: claimed, right on seen cases, right on unseen ones, and how the others fail.

In: the records of a run of `arena regrade`, and the kernels it judged. Out: a row for each, counts, and two files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from arena.integrations.published.sources import PublishedKernel
from arena.reports.intervals import wilson
from arena.reports.plain import plain
from arena.reports.tables import markdown, write_csv
from arena.results.failures import FailureClass, failure_class
from arena.results.messages import bare, code_of
from arena.results.outcome import Outcome, outcome_of_trial
from arena.results.record import CaseResult, Split, Trial
from arena.results.verdict import CORRECT, Status
from arena.runs.records import RunRecords, write_bytes

ROWS = "survival.csv"
PAGE = "survival.md"
KERNELS = "published.json"
"""the kernels of a run of `arena regrade`, beside its head"""
NOT_JUDGED = "not judged"
_WORST_FIRST = (FailureClass.SILENT, FailureClass.CRASHED, FailureClass.REFUSED)
_RIGHT = (str(Outcome.SOLVED), str(Outcome.SEEN_ONLY))
_SKIPPED = (Status.NOT_RUN, Status.HARNESS_ERROR)


@dataclass(frozen=True)
class SurvivalRow:
    """One published kernel: what is claimed of it, and what the judge found. Empty where nothing is known."""

    agent: str
    problem: str
    attempt: int
    task: str
    outcome: str
    seen_right: int
    seen_judged: int
    unseen_right: int
    unseen_judged: int
    failure: str
    """the class of its worst failure: silently wrong before crashed before refused"""
    cause: str
    """the code of that failure, for `arena explain`"""
    detail: str
    claimed_correct: bool | None
    claimed_speedup: float | None
    claimed_peak_fraction: float | None
    claimed_verdict: str
    speedup: float | None
    path: str
    commit: str
    sha256: str


def survival(run: RunRecords, kernels: Sequence[PublishedKernel]) -> list[SurvivalRow]:
    """Return a row for each published kernel, judged or not, in the order of the source."""
    trials = {trial.key: trial for trial in run.trials}
    return [_row(one, trials.get((one.agent, one.task, one.attempt))) for one in kernels]


def _row(kernel: PublishedKernel, trial: Trial | None) -> SurvivalRow:
    cases = trial.evaluation.cases if trial is not None and trial.evaluation is not None else ()
    seen, unseen = ([one for one in _judged(cases) if one.split is split] for split in (Split.SEEN, Split.HELDOUT))
    failed = [(found, one) for one in (*seen, *unseen) if (found := failure_class(one)) is not None]
    worst = min(failed, key=lambda pair: _WORST_FIRST.index(pair[0]), default=None)
    detail = kernel.lack or _detail(trial, worst[1] if worst is not None else None)
    evaluation = trial.evaluation if trial is not None else None
    return SurvivalRow(
        agent=kernel.agent,
        problem=kernel.problem,
        attempt=kernel.attempt,
        task=kernel.task,
        outcome=NOT_JUDGED if trial is None else str(outcome_of_trial(trial)),
        seen_right=sum(map(_right, seen)),
        seen_judged=len(seen),
        unseen_right=sum(map(_right, unseen)),
        unseen_judged=len(unseen),
        failure=str(worst[0]) if worst is not None else "",
        cause=code_of(worst[1].detail) if worst is not None else _cause(trial),
        detail=_last_line(detail),
        claimed_correct=kernel.claim.correct,
        claimed_speedup=kernel.claim.speedup,
        claimed_peak_fraction=kernel.claim.peak_fraction,
        claimed_verdict=kernel.claim.verdict,
        speedup=evaluation.seen_speedup if evaluation is not None and not _emulated(trial) else None,
        path=kernel.path,
        commit=kernel.commit,
        sha256=kernel.sha256,
    )


def _judged(cases: Iterable[CaseResult]) -> list[CaseResult]:
    return [one for one in cases if one.candidate not in _SKIPPED]


def _right(case: CaseResult) -> bool:
    return case.candidate in CORRECT


def _emulated(trial: Trial | None) -> bool:
    return trial is not None and trial.environment.device.emulated


def _detail(trial: Trial | None, case: CaseResult | None) -> str:
    if case is not None:
        return case.detail
    verdicts = trial.evaluation.verdicts if trial is not None and trial.evaluation is not None else ()
    return next((one.detail for one in verdicts if one.status is not Status.PASSED), "")


def _last_line(detail: str) -> str:
    """Return the last line of what happened, where a traceback names the error."""
    lines = bare(detail.strip()).strip().splitlines()
    return plain(lines[-1])[:200] if lines else ""


def _cause(trial: Trial | None) -> str:
    return code_of(_detail(trial, None).strip())


def write(run: RunRecords, kernels: Sequence[PublishedKernel], folder: Path) -> list[SurvivalRow]:
    """Write the rows as CSV and the page of counts; returns the rows."""
    rows = survival(run, kernels)
    write_csv(pd.DataFrame([asdict(row) for row in rows], dtype=object), folder / ROWS)
    write_bytes(folder / PAGE, page(run, rows).encode())
    return rows


def page(run: RunRecords, rows: Sequence[SurvivalRow]) -> str:
    """Return the counts as Markdown: the way of all kernels, causes, kinds of cases, and one line for each agent."""
    judged = [row for row in rows if row.outcome not in (NOT_JUDGED, str(Outcome.NO_VERDICT))]
    right = [row for row in judged if _right_on_seen(row)]
    held = [row for row in right if row.unseen_judged]
    device = run.info.environment.device
    where = f"the platform {device.platform}, an emulation without speeds" if device.emulated else device.name
    parts = [
        "# What survives of published kernels",
        "",
        f"Judged on {where}, effort {run.info.effort}. A claim is the publisher's own, on its own GPU and shapes.",
        "",
        *_table(
            ("", "kernels", "share", "95 % interval"),
            [
                _share("published", rows, rows),
                _share("judged here", judged, rows),
                _share("claimed correct, of those judged", [r for r in judged if r.claimed_correct], judged),
                _share("right on every seen case", right, judged),
                _share("right on every unseen case too, of those", [r for r in held if _survives(r)], held),
            ],
        ),
        "",
        "## How they fail",
        "",
        *_table(("failure", "cause", "kernels"), _causes(judged)),
        "",
        "## By kind of unseen case",
        "",
        *_table(("kind", "right", "judged", "share"), _kinds(run, {(r.agent, r.task, r.attempt) for r in held})),
        "",
        *_by("agent", judged, lambda row: row.agent),
        *_by("problem", judged, lambda row: row.problem),
        "## Not judged",
        "",
        *_table(("why", "kernels"), _counted(row.detail for row in rows if row not in judged)),
        "",
    ]
    return "\n".join(parts)


def _right_on_seen(row: SurvivalRow) -> bool:
    return row.seen_judged > 0 and row.seen_right == row.seen_judged


def _survives(row: SurvivalRow) -> bool:
    return row.unseen_right == row.unseen_judged


def _share(name: str, part: Sequence[SurvivalRow], whole: Sequence[SurvivalRow]) -> tuple[str, ...]:
    return (name, f"{len(part)} of {len(whole)}", *_interval(len(part), len(whole)))


def _interval(part: int, whole: int) -> tuple[str, str]:
    if not whole:
        return "–", "–"
    low, high = wilson(part / whole, whole)
    return f"{100 * part / whole:.0f} %", f"[{100 * low:.0f} %, {100 * high:.0f} %]"


def _causes(judged: Sequence[SurvivalRow]) -> list[tuple[str, ...]]:
    counts = Counter((row.failure or row.outcome, row.cause) for row in judged if row.outcome not in _RIGHT)
    return [(failure.replace("_", " "), cause or "–", str(count)) for (failure, cause), count in counts.most_common()]


def _kinds(run: RunRecords, keys: set[tuple[str, str, int]]) -> list[tuple[str, ...]]:
    right: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    for trial in run.trials:
        for case in _judged(trial.evaluation.cases) if trial.evaluation is not None and trial.key in keys else ():
            if case.split is Split.HELDOUT:
                judged[case.kind] += 1
                right[case.kind] += _right(case)
    return [(kind, str(right[kind]), str(count), _interval(right[kind], count)[0]) for kind, count in judged.items()]


def _by(heading: str, judged: Sequence[SurvivalRow], key: Callable[[SurvivalRow], str]) -> list[str]:
    rows = []
    for name in sorted({key(row) for row in judged}):
        mine = [row for row in judged if key(row) == name]
        right = [row for row in mine if _right_on_seen(row)]
        held = [row for row in right if row.unseen_judged]
        kept = [row for row in held if _survives(row)]
        silent = [row for row in held if not _survives(row) and row.failure == FailureClass.SILENT]
        rows.append(
            (name, str(len(mine)), str(len(right)), f"{len(kept)} of {len(held)}", str(len(silent)),
             _interval(len(kept), len(held))[1])
        )  # fmt: skip
    head = (heading, "judged", "right on seen", "right on unseen too", "silently wrong there", "95 % interval")
    return [f"## By {heading}", "", *_table(head, rows), ""]


def _counted(texts: Iterable[str]) -> list[tuple[str, ...]]:
    return [(text or "–", str(count)) for text, count in Counter(texts).most_common()]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return markdown(pd.DataFrame(list(rows), columns=list(head), dtype=object)).splitlines()
