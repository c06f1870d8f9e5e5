"""Small charts: text and marks with classes, whose colours `figure.css` sets for light and dark pages.

Written as SVG within a page, since a session page each would cost matplotlib half a minute for 392 trials; `png.py`
draws the same marks as an image with it. Everything that is written is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

COLOURS = 8
"""Colours of agents in `figure.css`; more agents than colours begin again."""


@dataclass(frozen=True)
class PlotAxis:
    """A linear axis: the values `low` to `high` lie at the pixels `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the pixel of a value; what lies beyond the axis is put at its end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Round values within the axis, at most `most`."""
        step = _step((self.high - self.low) / (most - 1))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [step * number for number in range(first, last + 1)]


class Stroke(NamedTuple):
    """A line through points, in pixels from the upper left; `style`: classes of `figure.css`."""

    points: Sequence[tuple[float, float]]
    style: str
    straight: bool = False

    def svg(self) -> str:
        """Return the element."""
        if self.straight:
            (x1, y1), (x2, y2) = self.points
            return f'<line class="{self.style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in self.points)
        return f'<polyline class="{self.style}" points="{places}"/>'


class Dot(NamedTuple):
    """A filled circle."""

    x: float
    y: float
    style: str
    radius: float

    def svg(self) -> str:
        """Return the element."""
        return f'<circle class="{self.style}" cx="{self.x:.1f}" cy="{self.y:.1f}" r="{self.radius}"/>'


class Words(NamedTuple):
    """A line of text; `anchor`: `start`, `middle` or `end`."""

    x: float
    y: float
    words: str
    style: str
    anchor: str

    def svg(self) -> str:
        """Return the element."""
        named = f' class="{self.style}"' if self.style else ""
        place = f'x="{self.x:.1f}" y="{self.y:.1f}" text-anchor="{self.anchor}"'
        return f"<text{named} {place}>{escape(self.words)}</text>"


@dataclass
class Chart:
    """A chart that grows by marks."""

    width: float
    height: float
    title: str
    marks: list[Stroke | Dot | Words] = field(default_factory=list)

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str = "rule") -> None:
        """Add a straight line."""
        self.marks.append(Stroke([(x1, y1), (x2, y2)], style, straight=True))

    def dot(self, x: float, y: float, style: str, radius: float = 4.5) -> None:
        """Add a filled circle."""
        self.marks.append(Dot(x, y, style, radius))

    def path(self, points: Sequence[tuple[float, float]], style: str) -> None:
        """Add a line through points."""
        self.marks.append(Stroke(points, style))

    def text(self, x: float, y: float, words: str, style: str = "", anchor: str = "start") -> None:
        """Add a line of text; `anchor`: `start`, `middle` or `end`."""
        self.marks.append(Words(x, y, words, style, anchor))

    def svg(self, style: str = "") -> str:
        """Return the chart, with a style sheet inside where it is to stand alone."""
        inside = f"<style>{style}</style>" if style else ""
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" role="img">'
        return f"{head}{inside}<title>{escape(self.title)}</title>{''.join(mark.svg() for mark in self.marks)}</svg>\n"


def nice(low: float, high: float, start: float, end: float) -> PlotAxis:
    """Return an axis over at least these values that ends at round ones."""
    step = _step((high - low) / 5 or 0.1)
    return PlotAxis(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step or step, start, end)


def colour(place: int) -> str:
    """The class of the agent at a place."""
    return f"a{place % COLOURS}"


def short(label: str, limit: int = 17) -> str:
    """A name that is cut in the middle where it is long."""
    half = limit // 2
    return label if len(label) <= limit else f"{label[:half]}…{label[-half:]}"


def _step(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * (1 - 1e-9))
