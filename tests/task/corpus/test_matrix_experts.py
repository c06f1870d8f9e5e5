"""Experts with matrix units stand alone, as candidates do; what they have in common must be the same in all."""

from __future__ import annotations

from pathlib import Path

TASKS = Path(__file__).parents[3] / "tasks"
BEGIN = "// A batch of matrix products:"
END = "// c[z] = finish(a[z] × b[z]), dense;"


def shared(text: str) -> str:
    """Return the batched product of an expert's text, up to the function that calls it."""
    return text[text.index(BEGIN) : text.index(END)]


def test_experts_have_the_same_batched_product() -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted(TASKS.rglob("expert.hip"))]
    products = [shared(text) for text in texts if BEGIN in text]
    assert len(products) >= 8
    assert len(set(products)) == 1
