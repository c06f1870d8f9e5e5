"""The image of a chart shows every mark of it, in the colours of the page."""

from __future__ import annotations

import io

import numpy as np
from matplotlib.image import imread

from arena.reports.png import DOTS_PER_INCH, PIXELS_PER_INCH, png
from arena.reports.svg import Chart

SCALE = DOTS_PER_INCH / PIXELS_PER_INCH


def pixels(chart: Chart) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Red, green and blue of every pixel, 0 to 1."""
    image: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = imread(io.BytesIO(png(chart)))[..., :3]
    return image


def test_marks_are_where_the_page_has_them() -> None:
    chart = Chart(200, 100, "a chart")
    chart.dot(50, 30, "a0", radius=8)
    chart.dot(150, 30, "hollow a0", radius=8)
    chart.line(20, 80, 180, 80, "bar a1")
    image = pixels(chart)
    assert image.shape[:2] == (100 * SCALE, 200 * SCALE)
    at = {
        place: image[int(place[1] * SCALE), int(place[0] * SCALE)] for place in ((50, 30), (150, 30), (100, 80), (5, 5))
    }
    assert np.allclose(at[50, 30], [0x3B / 255, 0x6F / 255, 0xB6 / 255], atol=0.01)
    assert np.allclose(at[150, 30], 1) and np.allclose(at[5, 5], 1)
    assert np.allclose(at[100, 80], [0xD9 / 255, 0x82 / 255, 0x2B / 255], atol=0.01)


def test_text_is_drawn_and_a_dollar_is_no_mathematics() -> None:
    chart = Chart(200, 40, "a chart")
    assert pixels(chart).min() == 1
    chart.text(10, 20, "$\\frac{ is a strange name$")
    assert pixels(chart).min() < 0.5
