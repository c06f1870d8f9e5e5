"""The curve of a session: speedup over evaluations and over minutes."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from arena.model.session import Evaluated
from arena.reporting.figures import LIGHT, Palette, drawing, legend_below, svg
from arena.reporting.formats import EMULATED

CAPTION = "Speedup on the seen cases, geometric mean: each evaluation, and the best so far. A cross did not pass."
_PASSED, _FAILED, _BEST = "#3b6fb6", "#c4553b", "#2f9e77"
_HEIGHT_IN = 2.9


def draw_curve(evaluations: Sequence[Evaluated], *, emulated: bool, palette: Palette = LIGHT) -> bytes | None:
    """The curve as SVG, one panel over evaluations and one over minutes, or None where nothing was evaluated."""
    if not evaluations:
        return None
    with drawing(palette, _HEIGHT_IN) as (figure, whole):
        figure.delaxes(whole)
        by_number, by_time = figure.subplots(1, 2, sharey=True)
        _panel(by_number, palette, [float(one.number) for one in evaluations], evaluations)
        _panel(by_time, palette, [one.at_s / 60 for one in evaluations], evaluations)
        by_number.set(xlabel="evaluation", ylabel="speedup over the baseline (×)")
        by_number.xaxis.get_major_locator().set_params(integer=True)
        by_time.set(xlabel="minutes at work")
        by_time.set_xlim(left=0)
        if emulated:
            figure.suptitle(f"These are {EMULATED}", fontsize=7, color=_FAILED)
        legend_below(figure, by_number)
        return svg(figure)


def best_so_far(evaluations: Sequence[Evaluated]) -> list[float | None]:
    """The highest speedup up to each evaluation; None before the first that passed."""
    best: float | None = None
    found = []
    for one in evaluations:
        if one.speedup is not None and (best is None or one.speedup > best):
            best = one.speedup
        found.append(best)
    return found


def _panel(axes: Axes, palette: Palette, places: Sequence[float], evaluations: Sequence[Evaluated]) -> None:
    passed = [(at, one.speedup) for at, one in zip(places, evaluations, strict=True) if one.speedup is not None]
    best = [(at, value) for at, value in zip(places, best_so_far(evaluations), strict=True) if value is not None]
    failed = [at for at, one in zip(places, evaluations, strict=True) if one.speedup is None]
    axes.axhline(1, color=palette.muted, lw=1, ls="--")
    if best:
        axes.step(*zip(*best, strict=True), where="post", color=_BEST, lw=1.8, label="best so far")
        axes.scatter(
            [at for at, _ in passed], [value for _, value in passed], color=_PASSED, s=18, zorder=3, label="passed"
        )
    if failed:
        axes.scatter(failed, [0.0] * len(failed), color=_FAILED, marker="x", s=22, zorder=3, label="did not pass")
    axes.set_ylim(bottom=-0.08 if failed else None)
    axes.grid()
