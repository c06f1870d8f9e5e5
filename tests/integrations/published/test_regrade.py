"""`arena regrade` from files to the page of what survives: right, wrong in silence, refusing, and without a task."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from tests.cli.test_commands import arena
from tests.modules.test_modules import HERE, MODULE, SOURCE

RIGHT = (HERE / "passed/parameter.py").read_text(encoding="utf-8")
FORWARD = "    def forward(self, x):\n"
ANSWERS = {
    "right": RIGHT,
    "silent": RIGHT.replace(FORWARD, f"{FORWARD}        if x.shape[-1] % 128:\n            return x.clone()\n"),
    "honest": RIGHT.replace(FORWARD, f"{FORWARD}        assert x.shape[-1] % 128 == 0, 'multiples of 128'\n"),
    "pytorch": (HERE / "rule_violation/computes_by_pytorch.py").read_text(encoding="utf-8"),
}
FOUND = {
    "right": ("solved", "", ""),
    "silent": ("overfit", "silently wrong", "output_wrong"),
    "honest": ("overfit", "refused", "kernel_refuses"),
    "pytorch": ("failed", "", "pytorch_computes"),
    "nobody": ("not judged", "", ""),
}


@pytest.mark.slow
def test_what_survives(tmp_path: Path) -> None:
    task = tmp_path / "corpus/triton2triton/suite/rms_norm"
    shutil.copytree(SOURCE, task, ignore=shutil.ignore_patterns("__pycache__"))
    text = (task / "task.yaml").read_text(encoding="utf-8")
    constant = text.replace("{uniform: [0.5, 1.5]}}", "{uniform: [0.5, 1.5]}, constant: true}")
    (task / "task.yaml").write_text(constant + MODULE, encoding="utf-8")
    kernel = (HERE / "_kernel.py").read_text(encoding="utf-8")
    for agent, answer in {**ANSWERS, "nobody": RIGHT}.items():
        name = "other" if agent == "nobody" else "rms_norm"
        file = tmp_path / f"source/{agent}/triton2triton/suite/{name}/kernel.py"
        file.parent.mkdir(parents=True)
        file.write_text(answer.replace("# <kernel>", kernel), encoding="utf-8")
    asked = ["regrade", str(tmp_path / "source"), "--as", "folder", "--tasks-dir", str(tmp_path / "corpus")]
    asked += ["--platform", "cpu", "--effort", "correctness", "--max-work", "2e4", "--seeds", "1"]
    done = arena(*asked, "--runs-dir", str(tmp_path / "runs"))
    assert done.returncode == 0, done.stderr
    with (tmp_path / "runs/published/survival.csv").open(encoding="utf-8") as table:
        rows = {row["agent"]: (row["outcome"], row["failure"], row["cause"]) for row in csv.DictReader(table)}
    assert rows == FOUND
    assert "| right on every other case too, of those | 1 of 3 |" in done.stdout
    again = arena(*asked, "--runs-dir", str(tmp_path / "runs"))
    assert again.returncode == 0 and "4 of 4 trials are recorded already" in again.stderr
