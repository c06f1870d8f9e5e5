"""A chart as an image for slides and papers, drawn by matplotlib in the light colours of `figure.css`."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from arena.reports.svg import Chart, Dot, Stroke, Words
from arena.reports.templating import asset

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PIXELS_PER_INCH, DOTS_PER_INCH = 96.0, 288.0
_POINTS = 72 / PIXELS_PER_INCH
_RULE = re.compile(r"\.(\w+) {([^}]*)}")
_STROKE = re.compile(r"stroke: (?:var\([^,]*, )?(#[0-9a-f]{6})")
_ANCHORS = {"start": "left", "middle": "center", "end": "right"}
_TEXT, _QUIET, _PANEL = "#1b2127", "#59636d", "#ffffff"


def png(chart: Chart) -> bytes:
    """Draw a chart at three times its size in pixels.

    Returns:
        The PNG file.
    """
    from matplotlib.figure import Figure

    size = (chart.width / PIXELS_PER_INCH, chart.height / PIXELS_PER_INCH)
    figure = Figure(figsize=size, dpi=DOTS_PER_INCH, facecolor=_PANEL)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0, chart.width), ylim=(chart.height, 0))
    axes.axis("off")
    for order, mark in enumerate(chart.marks, start=1):
        _draw(axes, mark, order)
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Title": chart.title})
    return file.getvalue()


def _draw(axes: Axes, mark: Stroke | Dot | Words, order: int) -> None:
    if isinstance(mark, Words):
        quiet = "quiet" in mark.style
        colour, points = (_QUIET, 11 * _POINTS) if quiet else (_TEXT, 12 * _POINTS)
        words = mark.words.replace("$", r"\$")  # no mathematical text
        axes.text(mark.x, mark.y, words, color=colour, fontsize=points, ha=_ANCHORS[mark.anchor])
        return
    classes = mark.style.split()
    colour = next((_colours()[name] for name in reversed(classes) if name in _colours()), _QUIET)
    if isinstance(mark, Dot):
        inside = _PANEL if "hollow" in classes else colour
        size = 2 * mark.radius * _POINTS
        axes.plot(mark.x, mark.y, "o", color=colour, mfc=inside, ms=size, mew=2 * _POINTS, zorder=order)
        return
    x, y = zip(*mark.points, strict=True)
    width = 1.0 if {"rule", "mark"} & set(classes) else 2.0
    dashes = "--" if "mark" in classes else "-"
    axes.plot(x, y, dashes, color=colour, lw=width * _POINTS, zorder=order)


def _colours() -> dict[str, str]:
    """Colours of lines by class, as the style sheet has them for light pages."""
    rules = ((name, _STROKE.search(rule)) for name, rule in _RULE.findall(asset("figure.css")))
    return {name: found.group(1) for name, found in rules if found}
