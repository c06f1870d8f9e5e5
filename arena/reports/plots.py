"""The figures of a report and of a session's page, as SVG. Each is None where there is nothing to show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from arena.reports import formats
from arena.reports.groups import ALL, CURVE, LATENCY_BOUND, Group
from arena.reports.measure import Unit
from arena.reports.svg import Chart, PlotAxis, colour, nice, short
from arena.results.environment import ratio_heading
from arena.results.session import Evaluated

WIDTH, NAMES, ROW, FIRST = 420.0, 112.0, 27.0, 20.0
MOST_ROWS = 9


@dataclass(frozen=True)
class Plot:
    """One figure: its file stem, title, what it shows in words, whether it rests on latencies, how it is drawn."""

    name: str
    title: str
    caption: str
    timed: bool
    draw: Callable[[Sequence[Group], bool], Chart | None]


def _speedups(groups: Sequence[Group], emulated: bool) -> Chart | None:
    known = [(place, group, value) for place, group in _rows(groups) if (value := group.mean["gain"]) is not None]
    if not known:
        return None
    lows = [1.0, *(value.value if value.low is None else value.low for _, _, value in known)]
    highs = [1.1, *(value.value if value.high is None else value.high for _, _, value in known)]
    chart = Chart(WIDTH, FIRST + ROW * len(known) + 34, f"{ratio_heading(emulated)} by agent")
    axis = nice(min(lows), max(highs), NAMES, WIDTH - 64)
    _scale(chart, axis, lambda tick: f"{tick:g}×", FIRST + ROW * len(known))
    chart.line(axis.at(1), FIRST - 12, axis.at(1), FIRST + ROW * len(known), "mark")
    for row, (place, group, value) in enumerate(known):
        y = _name(chart, row, group)
        if value.low is not None and value.high is not None:
            chart.line(axis.at(value.low), y, axis.at(value.high), y, f"bar {colour(place)}")
        chart.dot(axis.at(value.value), y, colour(place), _size(group))
        chart.text(WIDTH - 2, y + 4, formats.number(value.value, Unit.FACTOR), anchor="end")
    return chart


def _seen_and_heldout(groups: Sequence[Group], emulated: bool) -> Chart | None:
    known = [
        (place, group, seen, heldout)
        for place, group in _rows(groups)
        if (seen := group.mean["correctness_rate"]) and (heldout := group.mean["solved_rate"])
    ]
    if not known:
        return None
    chart = Chart(WIDTH, FIRST + ROW * len(known) + 34, "Trials correct on seen cases, and on unseen cases too")
    axis = PlotAxis(0.0, 1.0, NAMES, WIDTH - 100)
    _scale(chart, axis, lambda tick: f"{100 * tick:.0f} %", FIRST + ROW * len(known))
    for row, (place, group, seen, heldout) in enumerate(known):
        y = _name(chart, row, group)
        chart.line(axis.at(heldout.value), y, axis.at(seen.value), y, "gap")
        chart.dot(axis.at(seen.value), y, f"hollow {colour(place)}", _size(group) + 1)
        chart.dot(axis.at(heldout.value), y, colour(place), _size(group) - 0.5)
        chart.text(WIDTH - 2, y + 4, f"{100 * seen.value:.0f} → {100 * heldout.value:.0f} %", anchor="end")
    return chart


def _fast_p(groups: Sequence[Group], emulated: bool) -> Chart | None:
    curves = [(place, group) for place, group in enumerate(_overall(groups)) if group.curve]
    if not curves:
        return None
    chart = Chart(WIDTH, 210 + 16 * ((len(curves) + 1) // 2), "fast_p by agent")
    x, y = PlotAxis(CURVE[0], CURVE[-1], 44, WIDTH - 12), PlotAxis(0.0, 1.0, 160, 12)
    _frame(chart, x, y, lambda tick: f"{tick:g}×", lambda tick: f"{100 * tick:.0f} %")
    chart.text((x.start + x.end) / 2, 196, f"{ratio_heading(emulated)} above p", "quiet", "middle")
    for row, (place, group) in enumerate(curves):
        points = list(zip(CURVE, group.curve, strict=True))
        chart.path([(x.at(p), y.at(share)) for p, share in points], colour(place))
        left, down = 44 + 188 * (row % 2), 214 + 16 * (row // 2)
        chart.line(left, down - 4, left + 16, down - 4, f"bar {colour(place)}")
        chart.text(left + 22, down, short(group.label, 24))
    return chart


PLOTS = (
    Plot(
        "speedup",
        "Speedup",
        "Gain: geometric mean over all planned trials with its 95 % interval. A trial that is not solved, or not "
        "shown to be faster, counts as 1×, the baseline (dashed).",
        True,
        _speedups,
    ),
    Plot(
        "generalization",
        "From seen to unseen shapes",
        "Planned trials that are correct on every seen case (ring), and on every unseen case too (dot). "
        "The distance is what an agent loses.",
        False,
        _seen_and_heldout,
    ),
    Plot(
        "fast_p",
        "fast_p",
        "Share of planned trials that are correct on seen cases and faster than p times the baseline.",
        True,
        _fast_p,
    ),
)

CURVE_CAPTION = "Speedup on the seen cases, geometric mean: each evaluation, and the best so far. A cross did not pass."


def session_curve(evaluations: Sequence[Evaluated], *, emulated: bool) -> Chart | None:
    """Draw speedups over evaluations and over minutes, or None where nothing was evaluated."""
    if not evaluations:
        return None
    chart = Chart(640, 212, f"{ratio_heading(emulated)} over a session")
    known = [one.speedup for one in evaluations if one.speedup is not None]
    y = nice(0.0, max([1.0, *known]), 160, 12)
    minutes = [one.at_s / 60 for one in evaluations]
    _panel(chart, PlotAxis(0, len(evaluations) + 0.5, 44, 312), y, list(range(1, len(evaluations) + 1)), evaluations)
    _panel(chart, nice(0.0, max([0.1, *minutes]), 372, 632), y, minutes, evaluations)
    chart.text(178, 198, "evaluation", "quiet", "middle")
    chart.text(502, 198, "minutes at work", "quiet", "middle")
    return chart


def best_so_far(evaluations: Sequence[Evaluated]) -> list[float | None]:
    """The highest speedup up to each evaluation; None before the first that passed."""
    best: float | None = None
    found = []
    for one in evaluations:
        if one.speedup is not None and (best is None or one.speedup > best):
            best = one.speedup
        found.append(best)
    return found


def _panel(chart: Chart, x: PlotAxis, y: PlotAxis, places: Sequence[float], evaluations: Sequence[Evaluated]) -> None:
    _frame(chart, x, y, lambda tick: f"{tick:g}", lambda tick: f"{tick:g}×")
    chart.line(x.start, y.at(1), x.end, y.at(1), "mark")
    best = [(x.at(at), y.at(v)) for at, v in zip(places, best_so_far(evaluations), strict=True) if v is not None]
    if best:
        steps = [point for one, two in pairwise(best) for point in (one, (two[0], one[1]))]
        chart.path([*steps, best[-1]], colour(2))
    for at, one in zip(places, evaluations, strict=True):
        if one.speedup is not None:
            chart.dot(x.at(at), y.at(one.speedup), colour(0), 3.5)
        else:
            left, down = x.at(at), y.at(0)
            chart.line(left - 4, down - 4, left + 4, down + 4, "failed")
            chart.line(left - 4, down + 4, left + 4, down - 4, "failed")


def _overall(groups: Sequence[Group]) -> list[Group]:
    return [group for group in groups if group.task_type == ALL]


def _rows(groups: Sequence[Group]) -> list[tuple[int, Group]]:
    """The groups to draw, each with the place of its agent: task types too where there is room."""
    places = {group.label: place for place, group in enumerate(_overall(groups))}
    types = {group.task_type for group in groups} - {LATENCY_BOUND}
    all_fit = len(types) > 2 and len(places) * len(types) <= MOST_ROWS
    shown = types if all_fit else {ALL}
    return [(places[group.label], group) for group in groups if group.task_type in shown]


def _size(group: Group) -> float:
    return 4.5 if group.task_type == ALL else 3.0


def _name(chart: Chart, row: int, group: Group) -> float:
    y = FIRST + ROW * row
    overall = group.task_type == ALL
    chart.text(
        0 if overall else 10, y + 4, short(group.label if overall else group.task_type), "" if overall else "quiet"
    )
    return y


def _scale(chart: Chart, axis: PlotAxis, words: Callable[[float], str], bottom: float) -> None:
    for tick in axis.ticks():
        chart.line(axis.at(tick), FIRST - 12, axis.at(tick), bottom)
        chart.text(axis.at(tick), bottom + 16, words(tick), "quiet", "middle")


def _frame(chart: Chart, x: PlotAxis, y: PlotAxis, along: Callable[[float], str], up: Callable[[float], str]) -> None:
    for tick in y.ticks():
        chart.line(x.start, y.at(tick), x.end, y.at(tick))
        chart.text(x.start - 6, y.at(tick) + 4, up(tick), "quiet", "end")
    for tick in x.ticks():
        chart.text(x.at(tick), y.start + 18, along(tick), "quiet", "middle")
