"""The gallery of fills in docs/contribute/task-format.md, drawn by the code that fills inputs."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from drawing import QUIET, Drawing

from arena.task.definition import Fill
from arena.task.expression import Expression
from arena.task.numerics.fills import draw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.one_input import one_input


def fills() -> Drawing:
    """Draws of six fills, by the code that fills inputs; another version of PyTorch may draw other values."""
    out = Drawing(860, 430, "Draws of six fills")
    panels = [
        ("normal", "uneven: one large tile", _drawn("normal", {}, (16, 32), "float32", seed=9, uneven=True)),
        ("normal_even", "one scale", _drawn("normal_even", {}, (16, 32), "float32", seed=3)),
        (
            "normal_rows",
            "a scale for each row",
            _drawn("normal_rows", {"low": "0.1", "high": "4"}, (16, 32), "float32", seed=5),
        ),
        ("integers", "[0, 16)", _drawn("integers", {"low": "0", "high": "16"}, (16, 32), "int32", seed=1)),
        ("page_table", "distinct, below 600", _drawn("page_table", {"pages": "600"}, (16, 32), "int32", seed=1)),
        (
            "offsets",
            "ascending from 0 to 64",
            _drawn("offsets", {"total": "64", "least": "1"}, (16, 17), "int32", seed=1),
        ),
    ]
    for number, (name, note, values) in enumerate(panels):
        x, y = 30 + 275 * (number % 3), 36 + 198 * (number // 3)
        out.text(x, y, name, bold=True)
        out.text(x + 112, y, note, size=12, ink=QUIET)
        largest = max(abs(value) for row in values for value in row) or 1.0
        width = 250 / len(values[0])
        for line, row in enumerate(values):
            for column, value in enumerate(row):
                share = min(1.0, abs(value) / largest)
                color = (180, 83, 31) if value < 0 else (36, 99, 180)
                mixed = "".join(f"{round(255 + (tone - 255) * share**0.6):02x}" for tone in color)
                out.bar(round(x + column * width, 1), y + 10 + 9 * line, round(width - 0.5, 1), 8.5, f"#{mixed}")
    out.text(
        30,
        418,
        "Blue is positive, orange negative; the darkest is the largest of its panel. Rows are rows of the input.",
        size=12,
        ink=QUIET,
    )
    return out


def _drawn(
    kind: str, options: dict[str, str], shape: tuple[int, int], dtype: str, *, seed: int, uneven: bool = False
) -> list[list[float]]:
    """One draw of an input of a made-up task."""
    worked_out = one_input(Fill(kind, {name: Expression(text) for name, text in options.items()}), shape, dtype)
    tensor = worked_out.inputs[0]
    values = draw(tensor, worked_out, 1, torch.Generator().manual_seed(seed), uneven=uneven)[0].tolist()
    return [[float(value) for value in row] for row in values]
