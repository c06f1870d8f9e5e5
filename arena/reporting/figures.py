"""The look of every plot: one palette for light and one for dark pages, one frame, two ways to save."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

WIDTH_IN = 5.0
DPI = 180

AGENTS = ("#3b6fb6", "#d9822b", "#2f9e77", "#a8518a", "#c9a227", "#5aa9d6", "#c4553b", "#7a7f87")
"""Colours of agents, told apart also by colour-blind readers and on both backgrounds."""


@dataclass(frozen=True)
class Palette:
    """Colours of a page: its background, text and rules."""

    name: str
    background: str
    text: str
    muted: str
    grid: str


LIGHT = Palette("light", "#ffffff", "#1d2329", "#5c6670", "#e3e7eb")
DARK = Palette("dark", "#171b20", "#e4e8ec", "#9aa5b0", "#2e353d")


@contextmanager
def drawing(palette: Palette, height_in: float) -> Iterator[tuple[Figure, Axes]]:
    """A figure with one framed axes in the colours of the palette; no global state of pyplot is touched."""
    style: Any = {
        "font.size": 9,
        "font.family": "DejaVu Sans",
        "text.parse_math": False,
        "svg.hashsalt": "unseen-arena",
        "text.color": palette.text,
        "axes.labelcolor": palette.text,
        "axes.edgecolor": palette.muted,
        "axes.facecolor": palette.background,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "xtick.color": palette.muted,
        "ytick.color": palette.muted,
        "xtick.labelcolor": palette.text,
        "ytick.labelcolor": palette.text,
        "grid.color": palette.grid,
        "legend.frameon": False,
        "legend.fontsize": 8,
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(WIDTH_IN, height_in), dpi=DPI, layout="constrained", facecolor=palette.background)
        FigureCanvasAgg(figure)
        yield figure, figure.add_subplot()


def png(figure: Figure) -> bytes:
    """The figure as PNG bytes, without a date, so that the same records give the same file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def svg(figure: Figure) -> bytes:
    """The figure as SVG, letters as outlines and without a date, so that the same records give the same file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def legend_below(figure: Figure, axes: Axes, columns: int = 3) -> None:
    """Put the legend under the plot, where it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=min(columns, len(labels)))


def colour(place: int) -> str:
    """The colour of the agent at a place; more agents than colours begin again."""
    return AGENTS[place % len(AGENTS)]
