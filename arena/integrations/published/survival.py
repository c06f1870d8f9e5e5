"""Count which published kernels survive: claimed, right on published cases, right on others, and how the rest fails.

In: the records of a run of `arena regrade`, and the kernels it judged. Out: a row for each, counts, and two files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import NamedTuple

import pandas as pd

from arena.integrations.published.sources import PublishedKernel
from arena.reports.intervals import wilson
from arena.reports.plain import plain
from arena.reports.tables import markdown, write_csv
from arena.results.failures import FailureClass, failure_class
from arena.results.messages import bare, code_of
from arena.results.outcome import Outcome, outcome_of_trial
from arena.results.record import CaseResult, Split, Trial, counted
from arena.results.verdict import CORRECT, Status
from arena.runs.records import RunRecords, write_bytes

ROWS = "survival.csv"
PAGE = "survival.md"
KERNELS = "published.json"
"""the kernels of a run of `arena regrade`, beside its head"""
NOT_JUDGED = "not judged"
IMPRECISE = "imprecise"
BREAKS_RULE = "breaks a rule"
"""on other cases alone: a kernel that falls back to PyTorch there is right on those that were published"""
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
    """the class of its worst failure: silently wrong, imprecise, crashed, refused; breaks a rule, on others alone"""
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
        failure=worst[0] if worst is not None else _failed_before_any_case(trial) or _broken_elsewhere(told, unseen),
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
    values = [case.speedup.value for case in counted(cases) if case.speedup is not None]
    return geometric_mean(values) if values else None


def _failed_before_any_case(trial: Trial | None) -> str:
    """Return the class of a kernel that does not build or load; empty where it breaks a rule, or runs."""
    if trial is None or outcome_of_trial(trial) is not Outcome.FAILED or trial.status is Status.RULE_VIOLATION:
        return ""
    return FailureClass.CRASHED


def _broken_elsewhere(told: Sequence[CaseResult], others: Iterable[CaseResult]) -> str:
    """Return the class of a kernel that breaks a rule, but on no published case; empty for any other."""
    broken = any(case.candidate is Status.RULE_VIOLATION for case in others)
    return BREAKS_RULE if broken and told and all(map(_right, told)) else ""


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


class Survival(NamedTuple):
    """How far kernels come: each list is a part of the one before."""

    judged: list[SurvivalRow]
    tried: list[SurvivalRow]
    """without those that break a rule of ours on published cases, such as computing by PyTorch"""
    right: list[SurvivalRow]
    """right on every published case; where no published case was tried, all that were tried"""
    met: list[SurvivalRow]
    """of these, those that met all other cases, or failed one"""
    kept: list[SurvivalRow]
    """right on all of them"""


def progress_of(rows: Iterable[SurvivalRow]) -> Survival:
    """Return how far these kernels come."""
    judged = [row for row in rows if row.outcome not in (NOT_JUDGED, str(Outcome.NO_VERDICT))]
    tried = [row for row in judged if row.outcome != Outcome.FAILED or row.failure]
    right = [row for row in tried if row.published_right == row.published_judged and _ran(row)]
    met = [row for row in right if _met_others(row)]
    return Survival(judged, tried, right, met, [row for row in met if _all_others_right(row)])


def page(run: RunRecords, kernels: Sequence[PublishedKernel], rows: Sequence[SurvivalRow]) -> str:
    """Return the counts as Markdown: the way of all kernels, causes, kinds of cases, and one line for each agent."""
    found, told = progress_of(rows), any(row.published_judged for row in rows)
    judged, tried = found.judged, len(found.tried)
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
                ("published", str(len(rows)), "", ""),
                ("judged so far", f"{len(judged)} of {len(rows)}", "", ""),
                ("claimed correct", f"{sum(bool(row.claimed_correct) for row in judged)} of {len(judged)}", "", ""),
                ("tried: they break no rule of ours on published cases", f"{tried} of {len(judged)}", "", ""),
                _share("right on every published case", len(found.right), tried) if told else _NOT_TRIED,
                _share("right on every other case too, of those", len(found.kept), len(found.met)),
            ],
        ),
        "",
        "## How they fail",
        "",
        *_table(("failure", "cause", "on published cases", "on others only"), _causes(found)),
        "",
        f"## By kind of other case, over the {len(found.met)} kernels that met them",
        "",
        *_table(("kind", "cases right", "cases", "share"), _kinds(run, kernels, {_key(row) for row in found.met})),
        "",
        *_speeds(found.right if told else []),
        *_by("agent", judged, lambda row: row.agent),
        *_by("problem", judged, lambda row: row.problem),
        "## Not judged",
        "",
        *_table(("why", "kernels"), _counted(row.detail or "not yet judged" for row in rows if row not in judged)),
        "",
    ]
    return "\n".join(parts)


def _key(row: SurvivalRow) -> tuple[str, str, int]:
    return row.agent, row.task, row.attempt


def _ran(row: SurvivalRow) -> bool:
    return row.published_judged + row.unseen_judged > 0


def _met_others(row: SurvivalRow) -> bool:
    return row.outcome in (*_RIGHT, str(Outcome.OVERFIT)) or not _all_others_right(row)


def _all_others_right(row: SurvivalRow) -> bool:
    return row.unseen_right == row.unseen_judged


_NOT_TRIED = ("right on every published case", "none tried", "–", "–")


def _share(name: str, part: int, whole: int) -> tuple[str, ...]:
    return (name, f"{part} of {whole}", *_interval(part, whole))


def _interval(part: int, whole: int) -> tuple[str, str]:
    if not whole:
        return "–", "–"
    low, high = wilson(part / whole, whole)
    return f"{100 * part / whole:.0f} %", f"[{100 * low:.0f} %, {100 * high:.0f} %]"


def _causes(found: Survival) -> list[tuple[str, ...]]:
    failed = [row for row in found.judged if row.outcome not in _RIGHT]
    told = Counter((row.failure or row.outcome, row.cause) for row in failed if row not in found.right)
    counts = Counter((row.failure or row.outcome, row.cause) for row in failed)
    return [
        (failure.replace("_", " "), cause or "–", str(told[failure, cause]), str(count - told[failure, cause]))
        for (failure, cause), count in counts.most_common()
    ]


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
    over = (
        "Speedups are over PyTorch's operators: geometric means of the timed cases that are right. A kernel that fails "
        "a small case is not timed."
    )
    return ["## Speed", "", over, "", *_table(head, rows), ""]


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value).replace("%", " %")


def _by(heading: str, judged: Sequence[SurvivalRow], key: Callable[[SurvivalRow], str]) -> list[str]:
    rows = []
    for name in sorted({key(row) for row in judged}):
        found = progress_of(row for row in judged if key(row) == name)
        silent = [row for row in found.met if row.failure == FailureClass.SILENT]
        rows.append(
            (name, str(len(found.judged)), f"{len(found.right)} of {len(found.tried)}",
             f"{len(found.kept)} of {len(found.met)}", str(len(silent)), _interval(len(found.kept), len(found.met))[1])
        )  # fmt: skip
    others = ("right on others too", "silently wrong there", "right on others, 95 % interval")
    head = (heading, "judged", "right on published", *others)
    return [f"## By {heading}", "", *_table(head, rows), ""]


def _counted(texts: Iterable[str]) -> list[tuple[str, ...]]:
    return [(text or "–", str(count)) for text, count in Counter(texts).most_common()]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return markdown(pd.DataFrame(list(rows), columns=list(head), dtype=object)).splitlines()
