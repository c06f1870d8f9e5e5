"""A small SVG writer for figures: boxes, arrows, bars, marks. A text that would leave its box is an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

FILLS = {
    "plain": ("#ffffff", "#57606a"),
    "trusted": ("#e3effd", "#2463b4"),
    "untrusted": ("#fdebe3", "#b4531f"),
    "data": ("#e8f5ec", "#2b7a4b"),
    "time": ("#f0eafa", "#6a44a8"),
    "zone": ("#fafbfc", "#aab2bb"),
}
INK, QUIET = "#1f2328", "#57606a"
_CHARACTER = 0.56
"""width of a character in units of the font's size, the widest of usual sans-serif fonts"""


@dataclass
class Drawing:
    """One SVG file, in pixels."""

    width: int
    height: int
    title: str
    parts: list[str] = field(default_factory=list)

    def text(
        self, x: float, y: float, text: str, *, size: int = 13, bold: bool = False, ink: str = INK, middle: bool = False
    ) -> None:
        """Write one line whose base is at y."""
        anchor = ' text-anchor="middle"' if middle else ""
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{ink}"{weight}{anchor}>{escape(text)}</text>'
        )

    def note(self, x: float, y: float, text: str, *, middle: bool = False) -> None:
        """Write one small, quiet line."""
        self.text(x, y, text, size=12, ink=QUIET, middle=middle)

    def box(
        self, place: tuple[float, float, float, float], title: str, lines: Sequence[str] = (), kind: str = "plain"
    ) -> None:
        """A box at (x, y, width, height) with a title and lines below it."""
        x, y, width, height = place
        fill, stroke = FILLS[kind]
        dashes = ' stroke-dasharray="5 4"' if kind == "zone" else ""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" '
            f'fill="{fill}" stroke="{stroke}"{dashes}/>'
        )
        texts = [(title, 13), *((line, 12) for line in lines)]
        for text, size in texts:
            if len(text) * size * _CHARACTER > width - 14:
                raise ValueError(f"{self.title}: {text!r} is wider than its box")
        if (title and 22 + 17 * len(lines) > height) or (lines and not title):
            raise ValueError(f"{self.title}: {title!r} has more lines than its box")
        if title:
            self.text(x + 10, y + 20, title, bold=True, ink=stroke)
        for number, line in enumerate(lines):
            self.text(x + 10, y + 38 + 17 * number, line, size=12)

    def arrow(self, points: Sequence[tuple[float, float]], *, both: bool = False, dashed: bool = False) -> None:
        """A line through points, with a head at its end."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        start = ' marker-start="url(#head)"' if both else ""
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{QUIET}" stroke-width="1.5" '
            f'marker-end="url(#head)"{start}{dashes}/>'
        )

    def line(self, first: tuple[float, float], last: tuple[float, float]) -> None:
        """A thin line without a head."""
        self.parts.append(
            f'<line x1="{first[0]:g}" y1="{first[1]:g}" x2="{last[0]:g}" y2="{last[1]:g}" stroke="{FILLS["zone"][1]}"/>'
        )

    def bar(self, x: float, y: float, width: float, height: float, color: str) -> None:
        """A filled rectangle without a border."""
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{color}"/>')

    def mark(self, x: float, y: float, form: str, color: str) -> None:
        """A mark of 7 to 10 pixels around a point: a `disc`, `ring`, `square` or `diamond`."""
        shapes = {
            "disc": f'<circle cx="{x:.1f}" cy="{y:g}" r="3.5" fill="{color}"/>',
            "ring": f'<circle cx="{x:.1f}" cy="{y:g}" r="4.5" fill="none" stroke="{color}" stroke-width="1.5"/>',
            "square": f'<rect x="{x - 4:.1f}" y="{y - 4:g}" width="8" height="8" fill="{color}"/>',
            "diamond": f'<path d="M{x - 5:.1f} {y:g} l5 -5 5 5 -5 5z" fill="{color}"/>',
        }
        self.parts.append(shapes[form])

    def svg(self) -> str:
        """The file's text."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" font-family="system-ui, Segoe UI, DejaVu Sans, sans-serif" role="img">\n'
            f"<title>{escape(self.title)}</title>\n"
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
            f'orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" fill="{QUIET}"/></marker></defs>\n'
            f'<rect x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="10" '
            'fill="#ffffff" stroke="#d0d7de"/>\n'
        )
        return head + "\n".join(self.parts) + "\n</svg>\n"
