"""What `arena run quickstart` prints, from a kept run of it: for README and docs. Used by `tools/claims.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from arena.api.result import Result, result_of
from arena.reports import formats
from arena.reports.groups import ALL, groups
from arena.reports.intervals import Quantity
from arena.reports.measure import Unit
from arena.reports.results import RESULTS
from arena.reports.rows import trial_rows
from arena.reports.standings import LEVEL_NOTE, RankedGroup, overall, shown, standings
from arena.reports.summary import Summary, summary_table
from arena.reports.views import task_lines
from arena.results.failures import failures
from arena.results.outcome import Outcome, outcome_of_trial
from arena.results.record import Split, Trial
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS, load_task
from figures import kept

SHOWN = "triton2triton/normalization/rms_norm"
"""the task of which trials and cases are shown"""
OVERFIT = "hardcoded"
DRAWN = ("fast", "honest", OVERFIT)
"""the agents in the drawing of a report"""
_MOST_ROWS, _MOST_FAILURES = 12, 4
"""lines of an evaluation that are shown"""
COLUMNS = ("Agent", "Rank", "Solved", "Overfit", "Gain, emulated", "Lost on unseen shapes")
"""of the table of agents, which is wider"""


def table() -> str:
    """Return the table of agents, without the rows of task types."""
    found = _summary()
    rows = [[row.cells[name] for name in COLUMNS] for row in found.rows if row.task_type == ALL]
    notes = [note for note in found.notes if note in (LEVEL_NOTE, f"Ratios are of {formats.EMULATED}.")]
    return fenced([*aligned([list(COLUMNS), *rows]), "", *notes])


def trials() -> str:
    """Return the lines of the trials of one task as they appear while the run goes on, without their seconds."""
    run = kept.run(kept.QUICKSTART)
    order = sorted(run.info.planned, key=lambda key: run.info.tasks.index(key[1]))
    known = {trial.key: trial for trial in run.trials}
    rows = [
        [f"{number:>2}/{len(order)}", outcome_of_trial(known[key]), key[0], key[1], _cases(known[key])]
        for number, key in enumerate(order, 1)
        if key[1] == SHOWN
    ]
    return fenced(aligned(rows))


def answers() -> str:
    """Return the three answers of the report, and what a reader should make of them."""
    found = _summary()
    quoted = "\n>\n".join(f"> **{one.question}** {one.lead}. {one.rest}".replace("..", ".") for one in found.answers)
    return f"{quoted}\n\n" + "\n".join(f"- {line}" for line in _remarks(found))


def evaluation() -> str:
    """Return the beginning of what `arena evaluate` prints of the overfit kernel, columns shortened."""
    trial = _trial(OVERFIT)
    if trial.evaluation is None:
        raise ValueError(f"{OVERFIT} has no evaluation of {SHOWN}")
    result = result_of(trial.evaluation, load_task(TASKS / SHOWN), heldout=True)
    rows = [["case", "kind", "sizes", "status", "error / tolerance", "emulated ratio"], *_case_rows(result)]
    lines = [*_beginning(aligned(rows), _MOST_ROWS), *_beginning([*failures(trial.evaluation)], _MOST_FAILURES)]
    return fenced([*lines, result.summary])


class Shown(NamedTuple):
    """An agent in the drawing of a report: its cells, its gain with its interval, and a cell for each drawn task."""

    name: str
    solved: int
    gain: Quantity
    lost: float
    tasks: Mapping[str, str]


def drawn() -> tuple[list[Shown], list[str]]:
    """Return what the drawing of a report shows: its agents, and the leads of its three answers."""
    found = _summary()
    rows = {row.agent: row for row in found.rows if row.task_type == ALL}
    lines = task_lines(trial_rows([kept.run(kept.QUICKSTART)]), DRAWN)
    agents = []
    for place, name in enumerate(DRAWN):
        gain, lost = (rows[name].measures[measure] for measure in ("gain", "correctness_drop"))
        if gain is None or lost is None:
            raise ValueError(f"the kept run lacks a measure of {name}")
        cells = {line.name.rsplit("/", 1)[1]: line.cells[place] for line in lines}
        texts = {
            task: ", ".join([cell.lead, *re.findall(r"overfit, unseen (\S+)", cell.rest)])
            for task, cell in cells.items()
        }
        solved = rows[name].outcomes.get(Outcome.SOLVED, 0)
        agents.append(Shown(name, solved, gain, lost.value, texts))
    return agents, [answer.lead for answer in found.answers]


def fenced(lines: Sequence[str]) -> str:
    """Return lines as a block of text."""
    return "\n".join(["```text", *(line.rstrip() for line in lines), "```"])


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines whose cells stand below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def _summary() -> Summary:
    return summary_table(kept.run(kept.QUICKSTART))


def _trial(agent: str) -> Trial:
    return next(one for one in kept.run(kept.QUICKSTART).trials if (one.agent, one.task) == (agent, SHOWN))


def _cases(trial: Trial) -> str:
    counts = []
    for split, label in ((Split.SEEN, "seen"), (Split.HELDOUT, "held-out")):
        cases = trial.evaluation.split(split) if trial.evaluation else ()
        counts.append(f"{label} {sum(case.candidate is Status.PASSED for case in cases)}/{len(cases)}")
    return ", ".join(counts)


def _beginning(lines: Sequence[str], most: int) -> list[str]:
    """Return the first lines, and an ellipsis for the others."""
    return [*lines[:most], *(["…"] if len(lines) > most else [])]


def _case_rows(result: Result) -> list[list[str]]:
    rows = []
    for case, cells in zip(result.evaluation.cases, result.cases.to_dict("records"), strict=True):
        error = formats.NONE if case.error_ratio is None else f"{case.error_ratio:.3g}"
        sizes = case.label if len(case.label) <= 34 else f"{case.label[:33]}…"
        rows.append([case.case, str(cells["kind"]), sizes, case.candidate, error, formats.speedup(case.speedup)])
    return rows


def _remarks(found: Summary) -> list[str]:
    """Return what a reader should make of the answers, a sentence or two each."""
    rows = {row.agent: row for row in found.rows if row.task_type == ALL}
    first, second = _ranked()[:2]
    best, next_best = first.group.label, second.group.label
    if shown(first.over_next):
        lead = f"*{best}* leads *{next_best}*: the interval of their ratio lies above 1×."
    else:
        lead = f"No difference between *{best}* and *{next_best}* is shown: the interval of their ratio holds 1×."
    gain, mean = (rows[OVERFIT].measures[name] for name in ("gain", "mean_speedup"))
    drop = rows[best].measures["correctness_drop"]
    if gain is None or mean is None or drop is None or drop.high is None:
        raise ValueError("the kept run lacks a measure that the page states")
    lost, most = rows[OVERFIT].outcomes.get(Outcome.OVERFIT, 0), formats.number(drop.high, Unit.SHARE)
    return [
        f"{lead} Four tasks are few, so the intervals are wide.",
        f"*{OVERFIT}* has a gain of {formats.number(gain.value, Unit.FACTOR)}, although its mean ratio on seen cases "
        f"is {formats.number(mean.value, Unit.FACTOR)}. {lost} of {rows[OVERFIT].trials} trials fail an unseen case.",
        f"The last answer is no proof of generality: up to {most} of such trials could fail.",
        "The ratios come from the CPU platform. They compare kernels of an emulation.",
    ]


def _ranked() -> list[RankedGroup]:
    rows = trial_rows([kept.run(kept.QUICKSTART)])
    return [one for one in overall(standings(rows, groups(rows, RESULTS))) if one.place is not None]
