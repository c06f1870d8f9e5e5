"""Count which published kernels survive: claimed, right on published cases, right on others, and how the rest fails.

In: the records of a run of `arena regrade`, and the kernels it judged. Out: a row for each, counts, and two files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean

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
IMPRECISE = "imprecise"
_NEAR = 10.0
"""times the tolerance: results that are farther off are wrong, and not imprecise"""
_WORST_FIRST = (FailureClass.SILENT, IMPRECISE, FailureClass.CRASHED, FailureClass.REFUSED)
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
    published_right: int
    published_judged: int
    unseen_right: int
    unseen_judged: int
    """cases whose sizes or values the publisher did not have, small seen ones of the task among them"""
    failure: str
    """the class of its worst failure: silently wrong, imprecise, crashed, refused"""
    cause: str
    """the code of that failure, for `arena explain`"""
    detail: str
    claimed_correct: bool | None
    claimed_speedup: float | None
    claimed_peak_fraction: float | None
    claimed_verdict: str
    published_speedup: float | None
    """over PyTorch, geometric mean of the published cases that are timed"""
    other_speedup: float | None
    path: str
    commit: str
    sha256: str


def survival(run: RunRecords, kernels: Sequence[PublishedKernel]) -> list[SurvivalRow]:
    """Return a row for each published kernel, judged or not, in the order of the source."""
    trials = {trial.key: trial for trial in run.trials}
    return [_row(one, trials.get((one.agent, one.task, one.attempt))) for one in kernels]


def _row(kernel: PublishedKernel, trial: Trial | None) -> SurvivalRow:
    cases = _judged(trial.evaluation.cases if trial is not None and trial.evaluation is not None else ())
    told = [one for one in cases if one.case in kernel.cases]
    unseen = [one for one in cases if one.case not in kernel.cases]
    failed = [(found, one) for one in cases if (found := _failure(one))]
    worst = min(failed, key=lambda pair: _WORST_FIRST.index(pair[0]), default=None)
    detail = kernel.lack or _detail(trial, worst[1] if worst is not None else None)
    return SurvivalRow(
        agent=kernel.agent,
        problem=kernel.problem,
        attempt=kernel.attempt,
        task=kernel.task,
        outcome=NOT_JUDGED if trial is None else str(outcome_of_trial(trial)),
        published_right=sum(map(_right, told)),
        published_judged=len(told),
        unseen_right=sum(map(_right, unseen)),
        unseen_judged=len(unseen),
        failure=worst[0] if worst is not None else "",
        cause=code_of(worst[1].detail) if worst is not None else _cause(trial),
        detail=_last_line(detail),
        claimed_correct=kernel.claim.correct,
        claimed_speedup=kernel.claim.speedup,
        claimed_peak_fraction=kernel.claim.peak_fraction,
        claimed_verdict=kernel.claim.verdict,
        published_speedup=None if _emulated(trial) else _speedup(told),
        other_speedup=None if _emulated(trial) else _speedup(unseen),
        path=kernel.path,
        commit=kernel.commit,
        sha256=kernel.sha256,
    )


def _judged(cases: Iterable[CaseResult]) -> list[CaseResult]:
    return [one for one in cases if one.candidate not in _SKIPPED]


def _speedup(cases: Iterable[CaseResult]) -> float | None:
    values = [case.speedup.value for case in cases if case.speedup is not None]
    return geometric_mean(values) if values else None


def _failure(case: CaseResult) -> str:
    """Return the class of a failure; empty where there is none, or a rule was broken."""
    found = failure_class(case)
    near = case.candidate is Status.WRONG_RESULT and case.error_ratio is not None and case.error_ratio <= _NEAR
    return IMPRECISE if found is FailureClass.SILENT and near else str(found or "")


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
    write_bytes(folder / PAGE, page(run, kernels, rows).encode())
    return rows


def page(run: RunRecords, kernels: Sequence[PublishedKernel], rows: Sequence[SurvivalRow]) -> str:
    """Return the counts as Markdown: the way of all kernels, causes, kinds of cases, and one line for each agent."""
    judged = [row for row in rows if row.outcome not in (NOT_JUDGED, str(Outcome.NO_VERDICT))]
    tried = [row for row in judged if row.published_judged]
    right = [row for row in tried if row.published_right == row.published_judged]
    held = [row for row in (right if tried else judged) if met_others(row)]
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
                _share("right on every published case", right, tried) if tried else _NOT_TRIED,
                _share("right on every other case too, of those", [r for r in held if survives(r)], held),
            ],
        ),
        "",
        "## How they fail",
        "",
        *_table(("failure", "cause", "kernels"), _causes(judged)),
        "",
        "## By kind of other case",
        "",
        *_table(("kind", "right", "judged", "share"), _kinds(run, kernels, {_key(row) for row in held})),
        "",
        *_speeds(right),
        *_by("agent", judged, lambda row: row.agent),
        *_by("problem", judged, lambda row: row.problem),
        "## Not judged",
        "",
        *_table(("why", "kernels"), _counted(row.detail for row in rows if row not in judged)),
        "",
    ]
    return "\n".join(parts)


def _key(row: SurvivalRow) -> tuple[str, str, int]:
    return row.agent, row.task, row.attempt


def met_others(row: SurvivalRow) -> bool:
    """Return whether all other cases were judged, or one of them failed."""
    return row.outcome in (*_RIGHT, str(Outcome.OVERFIT)) or not survives(row)


def survives(row: SurvivalRow) -> bool:
    """Return whether no other case failed."""
    return row.unseen_right == row.unseen_judged


_NOT_TRIED = ("right on every published case", "none tried", "–", "–")


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


def _kinds(
    run: RunRecords, kernels: Sequence[PublishedKernel], keys: set[tuple[str, str, int]]
) -> list[tuple[str, ...]]:
    right: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    told = {(one.agent, one.task, one.attempt): one.cases for one in kernels}
    for trial in run.trials:
        for case in _judged(trial.evaluation.cases) if trial.evaluation is not None and trial.key in keys else ():
            if case.case not in told[trial.key]:
                kind = case.kind if case.split is Split.HELDOUT else "small"
                judged[kind] += 1
                right[kind] += _right(case)
    return [(kind, str(right[kind]), str(count), _interval(right[kind], count)[0]) for kind, count in judged.items()]


def _speeds(right: Sequence[SurvivalRow]) -> list[str]:
    """The speed of each kernel that is right on published cases, beside the claim; none where none was timed."""
    timed = [row for row in right if row.published_speedup is not None and row.outcome != Outcome.NOT_CREDITED]
    if not timed:
        return []
    head = ("kernel", "claimed share of the peak", "speedup on published cases", "on others", "others right")
    rows = [
        (f"{row.agent}/{row.problem}", _number(row.claimed_peak_fraction, "{:.0%}"),
         _number(row.published_speedup, "{:.2f}×"), _number(row.other_speedup, "{:.2f}×"),
         f"{row.unseen_right} of {row.unseen_judged}")
        for row in sorted(timed, key=lambda row: (row.problem, row.agent))
    ]  # fmt: skip
    over = "Speedups are over PyTorch's operators, geometric means of the timed cases that are right."
    return ["## Speed", "", over, "", *_table(head, rows), ""]


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value).replace("%", " %")


def _by(heading: str, judged: Sequence[SurvivalRow], key: Callable[[SurvivalRow], str]) -> list[str]:
    rows = []
    for name in sorted({key(row) for row in judged}):
        mine = [row for row in judged if key(row) == name]
        tried = [row for row in mine if row.published_judged]
        right = [row for row in tried if row.published_right == row.published_judged]
        held = [row for row in (right if tried else mine) if met_others(row)]
        kept = [row for row in held if survives(row)]
        silent = [row for row in held if row.failure == FailureClass.SILENT]
        rows.append(
            (name, str(len(mine)), f"{len(right)} of {len(tried)}", f"{len(kept)} of {len(held)}", str(len(silent)),
             _interval(len(kept), len(held))[1])
        )  # fmt: skip
    head = (heading, "judged", "right on published", "right on others too", "silently wrong there", "95 % interval")
    return [f"## By {heading}", "", *_table(head, rows), ""]


def _counted(texts: Iterable[str]) -> list[tuple[str, ...]]:
    return [(text or "–", str(count)) for text, count in Counter(texts).most_common()]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return markdown(pd.DataFrame(list(rows), columns=list(head), dtype=object)).splitlines()
