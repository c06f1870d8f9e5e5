"""The figures of the documentation are those that the tool draws."""

from __future__ import annotations

import pytest

from tests.tools import ROOT, load


def test_the_committed_figures_are_the_drawn_ones() -> None:
    """All but the fills, whose values depend on the version of PyTorch."""
    folder = ROOT / "docs" / "figures"
    for name, make in load("figures.drawings").FIGURES.items():
        assert (folder / f"{name}.svg").read_text(encoding="utf-8") == make().svg(), "run `python tools/claims.py`"


def test_a_text_wider_than_its_box_is_an_error() -> None:
    drawing = load("figures.svg").Drawing(100, 100, "too narrow")
    with pytest.raises(ValueError, match="wider than its box"):
        drawing.box((0, 0, 60, 40), "a title that does not fit")
