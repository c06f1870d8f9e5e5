"""A small, right task folder to start from; tests change one thing and see what the loader says."""

from __future__ import annotations

from pathlib import Path

TASK = """\
name: scale
summary: Every element of x times alpha, plus an optional bias.
entry: scale
axes:
  M: {doc: rows, domain: [1, 4096]}
  N: {doc: columns, domain: [8, 4096], multiple_of: 8}
  D: {doc: head size, values: [64, 128]}
constraints:
  - M <= 8 * N
dtypes:
  dtype: [float32, float16]
inputs:
  x: {shape: [M, N], dtype: $dtype, fill: normal}
  bias: {shape: [N], dtype: float32, fill: {uniform: [0, 1]}, optional: true}
  alpha: {scalar: float32, value: 0.5}
  flag: {scalar: bool, value: false}
outputs:
  y: {shape: [M, N], dtype: $dtype}
work: {flops: 2 * M * N}
"""
SEEN = """\
- {M: 1, N: 8, D: 64, dtype: float32}
- {M: 2, N: 16, D: 64, dtype: float32}
- {M: 4, N: 32, D: 64, dtype: float16}
- {M: 8, N: 64, D: 64, dtype: float16, alpha: 1e-2, timed: true}
- {M: 64, N: 1024, D: 64, dtype: float16, omit: [bias], timed: true}
"""
HELDOUT = """\
- {kind: edge, M: 1, N: 8, D: 128, dtype: float32}
- {kind: alignment, M: 3, N: 24, D: 64, dtype: float32}
- {kind: dtype, M: 4, N: 32, D: 64, dtype: float32}
- {kind: scale_up, M: 4096, N: 512, D: 64, dtype: float16, note: large, timed: true}
- {kind: structure, M: 8, N: 64, D: 64, dtype: float16, flag: true, timed: true}
"""
REFERENCE = "def reference(x, alpha):\n    return x * alpha\n"


def write_task(root: Path, place: str = "triton2triton/suite/scale", **replacements: str) -> Path:
    """Write the folder below `root`; `replacements` are whole files by stem: task, seen, heldout."""
    folder = root / place
    folder.mkdir(parents=True)
    texts = {"task": TASK, "seen": SEEN, "heldout": HELDOUT, **replacements}
    for stem, text in texts.items():
        (folder / f"{stem}.yaml").write_text(text, encoding="utf-8")
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    (folder / "kernel.py").write_text("def scale(x, bias, alpha, flag, y): ...\n", encoding="utf-8")
    return folder
