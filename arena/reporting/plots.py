"""The plots of a report. Each is drawn from groups alone and is left out where there is nothing to show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from arena.reporting.case_frame import HeldoutOutcome
from arena.reporting.figures import LIGHT, Palette, colour, drawing, legend_below, png
from arena.reporting.groups import ALL, CURVE, KINDS, Group
from arena.reporting.intervals import Quantity

EMULATED = "Latencies of an emulation (cpu platform)"

OUTCOME_COLOURS = {
    HeldoutOutcome.BOTH_PASS: "#2f9e77",
    HeldoutOutcome.IMPROVEMENT: "#3b6fb6",
    HeldoutOutcome.BOTH_FAIL: "#9aa1a9",
    HeldoutOutcome.REGRESSION: "#c4553b",
}
STATUS_COLOURS = {
    "passed": "#2f9e77",
    "missing": "#98a1aa",
    "harness_error": "#5d646b",
    "nothing_submitted": "#d5b48a",
    "compile_error": "#8c3b2a",
    "load_error": "#a34c38",
    "launch_error": "#c4553b",
    "wrong_result": "#d9822b",
    "nondeterministic": "#e3a04f",
    "input_mutated": "#c9a227",
    "out_of_bounds": "#dcc460",
    "timing_mismatch": "#a8518a",
    "implausible": "#8a4aa0",
    "timeout": "#5a4fa3",
    "crash": "#3f4c8f",
    "out_of_memory": "#3b6fb6",
    "rule_violation": "#5aa9d6",
    "wave_size_dependent": "#7fc4c9",
    "not_run": "#cfd5da",
}

Draw = Callable[[Figure, Axes, Palette, Sequence[Group]], bool]


@dataclass(frozen=True)
class Plot:
    """One plot: its file stem, title, what it shows in words, whether it rests on latencies, how it is drawn."""

    name: str
    title: str
    caption: str
    timed: bool
    draw: Draw
    height_in: Callable[[Sequence[Group]], float]


def render(plot: Plot, groups: Sequence[Group], *, emulated: bool, palette: Palette = LIGHT) -> bytes | None:
    """The plot as PNG bytes, or None where the groups hold nothing that it could show."""
    with drawing(palette, plot.height_in(groups)) as (figure, axes):
        if not groups or not plot.draw(figure, axes, palette, groups):
            return None
        if plot.timed and emulated:
            axes.set_title(EMULATED, fontsize=8, color="#c4553b", loc="left")
        return png(figure)


def _overall(groups: Sequence[Group]) -> list[Group]:
    return [group for group in groups if group.task_type == ALL]


def _types(groups: Sequence[Group]) -> list[str]:
    """Task types to show; with only one of them, `all` says the same and is left out."""
    types = sorted({group.task_type for group in groups if group.task_type != ALL})
    return types if len(types) == 1 else [ALL, *types]


def _errors(value: Quantity) -> tuple[list[float], list[float]]:
    low = value.value if value.low is None else value.low
    high = value.value if value.high is None else value.high
    return [value.value - low], [high - value.value]


def _bars(axes: Axes, palette: Palette, groups: Sequence[Group], measure: str) -> bool:
    """Bars with intervals: one cluster per task type, one bar per agent."""
    types, agents = _types(groups), [group.label for group in _overall(groups)]
    by_key = {(group.label, group.task_type): group.mean[measure] for group in groups}
    width, drawn = min(0.8 / len(agents), 0.4), False
    for place, agent in enumerate(agents):
        known = [(at, value) for at, name in enumerate(types) if (value := by_key.get((agent, name))) is not None]
        for at, value in known:
            centre = at + (place - (len(agents) - 1) / 2) * width
            label = None if at != known[0][0] else agent
            axes.bar(centre, value.value, width * 0.9, color=colour(place), label=label)
            axes.errorbar(centre, value.value, _errors(value), color=palette.text, capsize=2.5, lw=1)
            drawn = True
    axes.set_xticks(range(len(types)), types)
    margin = 1.2 if len(types) == 1 else 0.6
    axes.set_xlim(-margin, len(types) - 1 + margin)
    axes.grid(axis="y")
    return drawn


def _speedups(figure: Figure, axes: Axes, palette: Palette, groups: Sequence[Group]) -> bool:
    drawn = _bars(axes, palette, groups, "geomean_speedup")
    axes.axhline(1, color=palette.muted, lw=1, ls="--")
    axes.set_ylabel("speedup over the baseline (×)")
    legend_below(figure, axes)
    return drawn


def _retention(figure: Figure, axes: Axes, palette: Palette, groups: Sequence[Group]) -> bool:
    drawn = _bars(axes, palette, groups, "speedup_retention")
    axes.axhline(1, color=palette.muted, lw=1, ls="--")
    axes.set_ylabel("held-out / seen speedup (×)")
    legend_below(figure, axes)
    return drawn


def _fast_p(figure: Figure, axes: Axes, palette: Palette, groups: Sequence[Group]) -> bool:
    drawn = [(place, group) for place, group in enumerate(_overall(groups)) if group.curve]
    for place, group in drawn:
        axes.step(CURVE, group.curve, where="post", color=colour(place), label=group.label, lw=1.8)
    axes.axvline(1, color=palette.muted, lw=1, ls="--")
    axes.set(xlabel="p: speedup threshold (×)", ylabel="tasks correct and faster than p", ylim=(0, 1.03))
    axes.set_xlim(CURVE[0], CURVE[-1])
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.grid()
    legend_below(figure, axes)
    return bool(drawn)


def _seen_and_heldout(figure: Figure, axes: Axes, palette: Palette, groups: Sequence[Group]) -> bool:
    """Per agent: correctness on seen and on held-out cases as two dots joined by the drop."""
    agents = [group for group in _overall(groups) if group.mean["heldout_correctness_rate"] is not None]
    for at, group in enumerate(agents):
        seen, heldout = group.mean["correctness_rate"], group.mean["heldout_correctness_rate"]
        assert seen is not None
        assert heldout is not None
        axes.plot([heldout.value, seen.value], [at, at], color=palette.muted, lw=2, zorder=1)
        for value, shade, label, up in ((seen, "#3b6fb6", "seen", -0.12), (heldout, "#d9822b", "held-out", 0.12)):
            axes.errorbar(value.value, at + up, xerr=_errors(value), color=shade, capsize=2.5, lw=1, zorder=2)
            axes.scatter(value.value, at + up, color=shade, s=36, zorder=3, label=label if at == 0 else None)
        drop, middle = group.mean["correctness_drop"], (seen.value + heldout.value) / 2
        if drop is not None:
            text = f"drop {100 * drop.value:.0f} % of {drop.count:g}"
            axes.annotate(text, (middle, at - 0.3), ha="center", fontsize=8)
    _agent_axis(axes, [group.label for group in agents])
    axes.set(xlim=(-0.03, 1.03), xlabel="share of planned trials that are correct")
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    legend_below(figure, axes)
    return bool(agents)


def _kinds(figure: Figure, axes: Axes, palette: Palette, groups: Sequence[Group]) -> bool:
    agents = [group for group in _overall(groups) if group.kinds]
    present = {kind.kind for group in agents for kind in group.kinds}
    kinds = [*(kind for kind in KINDS if kind in present), *sorted(present - set(KINDS))]
    height = 0.8 / max(1, len(agents))
    for place, group in enumerate(agents):
        for first, drop in enumerate(group.kinds):
            at = kinds.index(drop.kind) + (place - (len(agents) - 1) / 2) * height
            label = group.label if first == 0 else None
            axes.barh(at, drop.drop.value, height * 0.9, color=colour(place), label=label)
            axes.errorbar(drop.drop.value, at, xerr=_errors(drop.drop), color=palette.text, capsize=2, lw=1)
            beyond = (drop.drop.high or drop.drop.value) + 0.01
            axes.text(beyond, at, f"of {drop.cases}", va="center", fontsize=6, color=palette.muted)
    _agent_axis(axes, kinds)
    axes.set(xlim=(0, 1.03), xlabel="share of held-out cases that fail")
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    legend_below(figure, axes)
    return bool(kinds)


def _outcomes(figure: Figure, axes: Axes, palette: Palette, groups: Sequence[Group]) -> bool:
    agents = [group for group in _overall(groups) if sum(group.outcomes.values())]
    totals = [sum(group.outcomes.values()) for group in agents]
    parts = [
        (str(outcome).replace("_", " "), shade, [group.outcomes[outcome] for group in agents])
        for outcome, shade in OUTCOME_COLOURS.items()
    ]
    _stack(axes, [group.label for group in agents], totals, parts)
    axes.set_xlabel("share of held-out cases")
    legend_below(figure, axes, columns=4)
    return bool(agents)


def _statuses(figure: Figure, axes: Axes, palette: Palette, groups: Sequence[Group]) -> bool:
    agents = _overall(groups)
    names = [name for name in STATUS_COLOURS if any(name in group.counts.statuses for group in agents)]
    parts = [
        (name.replace("_", " "), STATUS_COLOURS[name], [group.counts.statuses.get(name, 0) for group in agents])
        for name in names
    ]
    _stack(axes, [group.label for group in agents], [group.counts.planned for group in agents], parts)
    axes.set_xlabel("share of planned trials")
    legend_below(figure, axes)
    return bool(names)


def _stack(
    axes: Axes, labels: Sequence[str], totals: Sequence[int], parts: Sequence[tuple[str, str, Sequence[int]]]
) -> None:
    """Horizontal bars of shares, each part with its count where there is room."""
    left = [0.0] * len(labels)
    for name, shade, counts in parts:
        shares = [count / total for count, total in zip(counts, totals, strict=True)]
        axes.barh(range(len(labels)), shares, 0.6, left=left, color=shade, label=name)
        for at, (share, count) in enumerate(zip(shares, counts, strict=True)):
            if share > 0.05:
                axes.text(left[at] + share / 2, at, str(count), ha="center", va="center", color="white", fontsize=8)
        left = [start + share for start, share in zip(left, shares, strict=True)]
    _agent_axis(axes, labels)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(PercentFormatter(1))


def _agent_axis(axes: Axes, labels: Sequence[str]) -> None:
    """Names on the vertical axis, first on top; long ones are cut in the middle."""
    axes.set_yticks(range(len(labels)), [_short(label) for label in labels])
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")


def _short(label: str, limit: int = 22) -> str:
    half = limit // 2
    return label if len(label) <= limit else f"{label[: half - 1]}…{label[-half:]}"


def _fixed(groups: Sequence[Group]) -> float:
    return 3.2


def _per_agent(groups: Sequence[Group]) -> float:
    return 1.7 + 0.42 * len(_overall(groups))


def _per_kind(groups: Sequence[Group]) -> float:
    kinds = {kind.kind for group in groups for kind in group.kinds}
    return 1.3 + len(kinds) * max(0.34, 0.16 * len(_overall(groups)))


PLOTS = (
    Plot(
        "speedup",
        "Speedup",
        "Geometric mean over all planned trials, a failed trial counting as 1×; bars are 95 % intervals.",
        True,
        _speedups,
        _fixed,
    ),
    Plot(
        "fast_p",
        "fast_p",
        "Share of planned trials that are correct and faster than p times the baseline.",
        True,
        _fast_p,
        _fixed,
    ),
    Plot(
        "correctness",
        "Seen and held-out correctness",
        "Share of planned trials that are correct on every seen case, and on every held-out case too.",
        False,
        _seen_and_heldout,
        _per_agent,
    ),
    Plot(
        "kinds",
        "Correctness drop by kind",
        "Share of held-out cases of each kind that fail, of trials that were correct on every seen case.",
        False,
        _kinds,
        _per_kind,
    ),
    Plot(
        "outcomes",
        "Held-out outcomes",
        "Held-out cases by whether baseline and candidate pass; a regression is one that only the baseline passes.",
        False,
        _outcomes,
        _per_agent,
    ),
    Plot(
        "retention",
        "Speedup retention",
        "Held-out speedup over seen speedup, geometric mean over trials that have both.",
        True,
        _retention,
        _fixed,
    ),
    Plot(
        "statuses",
        "How trials ended",
        "Every planned trial by its status.",
        False,
        _statuses,
        lambda groups: _per_agent(groups) + 0.4,
    ),
)
