"""The data behind a report as pandas frames, CSV, JSON and markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from arena.processes.printable import printable
from arena.reports import formats
from arena.reports.answers import answers
from arena.reports.case_frame import Cell, case_cells, estimate_cells
from arena.reports.compare import Comparison
from arena.reports.groups import ALL, CURVE, MISSING, Group, evaluate
from arena.reports.intervals import Quantity
from arena.reports.measure import Unit, by_task
from arena.reports.measures import BY_NAME, bounded, relative
from arena.reports.plain import markdown_line
from arena.reports.report_warnings import ReportWarning
from arena.reports.results import gain_heading, gain_text
from arena.reports.rows import CaseRow, TrialRow
from arena.reports.standings import RankedGroup
from arena.reports.target_tables import target_cells
from arena.reports.targets import portability
from arena.results.outcome import Outcome
from arena.results.record import Split
from arena.results.verdict import Status
from arena.runs.records import RunRecords

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
JSON_VERSION = 2
CLOCKS = {True: "emulation", False: "device"}
"""What the latencies of a row are: of a device, or of an emulation on the cpu platform."""


def trials_frame(rows: Sequence[TrialRow]) -> pd.DataFrame:
    """One row per planned trial."""
    return pd.DataFrame([trial_cells(row) for row in rows])


def cases_frame(rows: Sequence[TrialRow]) -> pd.DataFrame:
    """One row per case of every recorded trial; latencies in milliseconds."""
    cells = [_case_cells(row, case) for row in rows for case in row.cases]
    return pd.DataFrame(cells, columns=None if cells else ["run", "agent", "task", "case"])


def measures_frame(groups: Sequence[Group], emulated: bool) -> pd.DataFrame:
    """One row per measure of every group: over the mean of attempts, and over the best of them."""
    cells = []
    for group in groups:
        for attempts, values in (("mean", group.mean), ("best", group.best)):
            for name, value in values.items():
                head: dict[str, Cell] = {"agent": group.label, "task_type": group.task_type}
                head |= {"measure": name, "attempts": attempts, "planned": group.counts.planned}
                head |= {"handed_in": group.counts.handed_in, "not_handed_in": group.counts.not_handed_in}
                clock = CLOCKS[emulated] if BY_NAME[name].timed else None
                cells.append(head | _quantity_cells(value) | {"latencies": clock})
    return pd.DataFrame(cells)


def report_json(
    runs: Sequence[RunRecords],
    standings: Sequence[RankedGroup],
    found: Sequence[ReportWarning],
    rows: Sequence[TrialRow],
) -> str:
    """Everything in one strict JSON document (no NaN), for machines."""
    emulated = any(run.info.environment.device.emulated for run in runs)
    document = {
        "report_version": JSON_VERSION,
        "latencies": CLOCKS[emulated],
        "runs": [_run_cells(run) for run in runs],
        "answers": [asdict(one) for one in answers(standings, emulated)],
        "groups": [_group_cells(one) for one in standings],
        "warnings": [{"problem": d.problem, "items": list(d.items), "next_step": d.next_step} for d in found],
        "trials": [_trial_document(row) for row in rows],
    }
    return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def write_csv(frame: pd.DataFrame, path: Path) -> Path:
    """Write a frame as CSV with full precision; no text in it is a formula to a spreadsheet."""
    plain = frame.copy()
    for name in frame:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            plain[name] = frame[name].map(_plain)
    plain.to_csv(path, index=False, lineterminator="\n")
    return path


def markdown(frame: pd.DataFrame) -> str:
    """A frame as a markdown table; cells hold neither HTML nor links, and no cell ends early."""
    rows = [list(map(str, frame.columns)), *frame.astype(object).to_numpy().tolist()]
    lines = ["| " + " | ".join(_markdown_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "| " + " | ".join("---" for _ in rows[0]) + " |", *lines[1:]]) + "\n"


def statuses_frame(groups: Sequence[Group]) -> pd.DataFrame:
    """Return how trials ended: one row per agent, a column for each outcome, then for each status that failed."""
    overall = [group for group in groups if group.task_type == ALL]
    names = [name for name in (*map(str, Status), MISSING) if any(name in group.counts.statuses for group in overall)]
    names = [name for name in names if name not in (Status.NOTHING_SUBMITTED, Status.PASSED)]
    ended = [outcome for outcome in Outcome if any(outcome in group.counts.outcomes for group in overall)]
    return pd.DataFrame([_status_cells(group, ended, names) for group in overall])


def _status_cells(group: Group, ended: Sequence[Outcome], names: Sequence[str]) -> dict[str, str]:
    counts = group.counts
    cells = {"Agent": group.label, "Planned": str(counts.planned)}
    cells |= {str(one).capitalize(): str(counts.outcomes.get(one, 0)) for one in ended}
    cells |= {"Compiled": formats.ratio_of(counts.compiled, counts.handed_in)}
    cells |= {"Correct, seen": formats.ratio_of(counts.correct, counts.handed_in)}
    return cells | {name.replace("_", " "): str(counts.statuses.get(name, 0)) for name in names}


def suites_frame(rows: Sequence[TrialRow], emulated: bool) -> pd.DataFrame:
    """Agents by suite of tasks: trials solved, the gain, the drop."""
    cells = []
    for suite in sorted({_suite(row) for row in rows}):
        for label in dict.fromkeys(row.label for row in rows):
            mine = [row for row in rows if row.label == label and _suite(row) == suite]
            long = [row for row in mine if not row.latency_bound]
            drop = evaluate(BY_NAME["correctness_drop"], mine, by_task(mine))
            gain = evaluate(BY_NAME["gain"], long, by_task(long))
            solved = sum(row.outcome.solves for row in mine)
            cells.append(
                {
                    "Suite": suite,
                    "Agent": label,
                    "Solved": formats.ratio_of(solved, len(mine)),
                    gain_heading(emulated): gain_text(gain),
                    "Lost on unseen shapes": formats.counted(drop, Unit.SHARE),
                }
            )
    return pd.DataFrame(cells)


def kinds_frame(overall: Sequence[Group]) -> pd.DataFrame:
    """Held-out cases by kind: one row per agent and kind."""
    cells = [
        {
            "Agent": group.label,
            "Kind": kind.kind,
            "Passed": formats.ratio_of(kind.passed, kind.cases),
            "Drop": formats.quantity(kind.drop, Unit.SHARE),
        }
        for group in overall
        for kind in group.kinds
    ]
    return pd.DataFrame(cells, columns=["Agent", "Kind", "Passed", "Drop"])


def _suite(row: TrialRow) -> str:
    return row.task.rsplit("/", 1)[0]


def comparison_markdown(comparison: Comparison) -> str:
    """A comparison as markdown: conclusions first, then the paired tasks."""
    lines = [f"# {comparison.second} against {comparison.first}", ""]
    lines += [f"First: {comparison.first}. Second: {comparison.second}. Ratios above 1 speak for the second."]
    lines += ["Seen: right on every seen case. Solved: on every unseen one too, with a valid timing.", ""]
    results = (comparison.seen, comparison.solved, comparison.speed)
    lines += [f"- {markdown_line(result.conclusion)}" for result in results]
    lines += [f"- Note: {markdown_line(note)}." for note in comparison.notes]
    if comparison.speed.latency_ratio is not None:
        ratio = comparison.speed.latency_ratio.value
        lines.append(
            f"- For information: latencies, first over second: {ratio:.3f}; they hold changes of the machine too."
        )
    if comparison.emulated:
        lines.append(f"- Latencies here are {formats.EMULATED}.")
    cells = [
        {
            "Task": pair.task,
            "Seen, first": formats.number(pair.first_seen, Unit.SHARE),
            "Seen, second": formats.number(pair.second_seen, Unit.SHARE),
            "Solved, first": formats.number(pair.first_solved, Unit.SHARE),
            "Solved, second": formats.number(pair.second_solved, Unit.SHARE),
            "Speedup, second / first": formats.speedup(pair.speedup_ratio),
            "Latency, first / second": formats.NONE if pair.latency_ratio is None else f"{pair.latency_ratio:.3f}",
        }
        for pair in comparison.tasks
    ]
    return "\n".join([*lines, "", markdown(pd.DataFrame(cells)) if cells else ""])


def trial_cells(row: TrialRow) -> dict[str, Cell]:
    """Return the cells of a trial by column: outcome, gates, counts of cases, speedups and scores."""
    cells: dict[str, Cell] = {"run": row.run, "agent": row.agent, "label": row.label, "task": row.task}
    cells |= {"task_type": row.task_type, "attempt": row.attempt, "outcome": str(row.outcome)}
    cells |= {"stage_status": str(row.ended_by or MISSING)}
    cells |= {"handed_in": row.handed_in, "compiled": row.compiled, "correct": row.correct, "performed": row.performed}
    cells |= {"heldout_ran": row.heldout_ran, "solved": row.solved}
    for split in Split:
        results = row.split(split)
        cells |= {f"{split}_passed": sum(case.correct for case in results), f"{split}_cases": len(results)}
    cells |= estimate_cells("speedup", row.speedup) | estimate_cells("heldout_speedup", row.heldout_speedup)
    cells |= estimate_cells("served_speedup", row.served_speedup)
    cells |= {"gain": row.gain.value if row.gain else 1.0}
    cells |= {"retention": row.retention, "regime_retention": row.regime_retention}
    cells |= {"bounded_reward": bounded(row), "relative_to_expert": relative(row)}
    cells |= {"points": row.points, "reward": row.reward}
    cells |= {"roofline_fraction": row.roofline, "sol_score": row.sol, "seconds": row.seconds}
    return cells | {"detail": row.detail, "latencies": CLOCKS[row.emulated]}


def _trial_document(row: TrialRow) -> dict[str, object]:
    found = portability(row)
    return {**trial_cells(row), "portability": found.word if found else None, "targets": target_cells(row)}


def _case_cells(row: TrialRow, case: CaseRow) -> dict[str, Cell]:
    cells: dict[str, Cell] = {"run": row.run, "agent": row.agent, "label": row.label, "task": row.task}
    cells |= {"attempt": row.attempt} | case_cells(case.result, case.outcome)
    return cells | {"latencies": CLOCKS[row.emulated]}


def _quantity_cells(value: Quantity | None) -> dict[str, Cell]:
    if value is None:
        return {"value": None, "low": None, "high": None, "interval": None, "tasks": 0, "count": 0}
    return {
        "value": value.value,
        "low": value.low,
        "high": value.high,
        "interval": str(value.method),
        "tasks": value.tasks,
        "count": value.count,
    }


def _run_cells(run: RunRecords) -> dict[str, object]:
    info, device = run.info, run.info.environment.device
    return {
        "run": info.run,
        "started_at": info.started_at,
        "arena_version": info.arena_version,
        "agents": list(info.agents),
        "tasks": list(info.tasks),
        "attempts": info.attempts,
        "platform": device.platform,
        "arch": device.arch,
        "device": device.name,
        "driver": device.driver,
        "isolation": info.environment.isolation,
        "versions": dict(info.environment.versions),
    }


def _group_cells(one: RankedGroup) -> dict[str, object]:
    group, counts = one.group, one.group.counts
    return {
        "agent": group.label,
        "place": one.place,
        "difference_above_shown": not one.level,
        "task_type": group.task_type,
        "counts": {
            "tasks": counts.tasks,
            "planned": counts.planned,
            "recorded": counts.recorded,
            "missing": counts.missing,
            "handed_in": counts.handed_in,
            "not_handed_in": counts.not_handed_in,
            "harness_errors": counts.harness_errors,
            "compiled": counts.compiled,
            "correct": counts.correct,
            "performed": counts.performed,
            "heldout_ran": counts.heldout_ran,
            "solved": counts.solved,
            "noisy_cases": counts.noisy_cases,
            "unjudged_cases": counts.unjudged_cases,
            "sessions": counts.sessions,
            "never_correct": counts.never_correct,
            "cost_known": counts.cost_known,
            "tokens_known": counts.tokens_known,
        },
        "trial_outcomes": {str(outcome): count for outcome, count in counts.outcomes.items()},
        "stage_statuses": dict(counts.statuses),
        "mean_of_attempts": _quantities(group.mean),
        "best_of_attempts": _quantities(group.best),
        "heldout_outcomes": {str(outcome): count for outcome, count in group.heldout_cases.items()},
        "kinds": {k.kind: {"passed": k.passed, "cases": k.cases} | _quantity_cells(k.drop) for k in group.kinds},
        "fast_p_curve": {"p": list(CURVE), "share": list(group.curve)},
    }


def _quantities(values: Mapping[str, Quantity | None]) -> dict[str, dict[str, Cell] | None]:
    return {name: None if value is None else _quantity_cells(value) for name, value in values.items()}


def _plain(cell: object) -> object:
    """Text that a spreadsheet would work out gets an apostrophe in front; numbers, also written out, stay numbers."""
    if not isinstance(cell, str):
        return cell
    text = printable(cell)
    formula = text.startswith("\t") or text.lstrip().startswith(_FORMULA)
    return f"'{text}" if formula and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _markdown_cell(cell: object) -> str:
    return markdown_line(str(cell)).replace("|", "&#124;")
