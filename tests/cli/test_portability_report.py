"""Three candidates that break on another vendor's GPU, each in its own way, told apart in a real run's report."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arena.cli.app import app
from arena.platforms.cross.compilers import abilities
from tests.candidates import HERE, TASK_OF, assembled

AGENTS = {
    "assumes_32_lanes": "cheats/softmax/assumes_32_lanes.hip",
    "amd_builtin": "portability/softmax/amd_builtin.hip",
    "inline_ptx": "portability/softmax/inline_ptx.hip",
}
CONFIG = """
name: portability
platform: cpu
tasks: [{task}]
attempts: 1
agents:
{agents}
evaluation: {{max_work: 2.0e+4, timing_budget_s: 0.05, targets: [gfx942, sm_90]}}
"""

missing = [f"{a.language} for {a.vendor}" for a in abilities() if a.language == "hip" and not a.able]


@pytest.mark.slow
@pytest.mark.skipif(bool(missing), reason=f"this machine cannot compile {', '.join(missing)}")
def test_each_breaks_in_its_own_way(tmp_path: Path) -> None:
    task, lines = TASK_OF["softmax"], []
    for agent, file in AGENTS.items():
        folder = tmp_path / agent / task
        folder.mkdir(parents=True)
        assembled(HERE / file, folder).rename(folder / "kernel.hip")
        lines.append(f"  - {{name: {agent}, kind: replay, folder: {tmp_path / agent}}}")
    (tmp_path / "run.yaml").write_text(CONFIG.format(task=task, agents="\n".join(lines)), encoding="utf-8")
    folders = ["--runs-dir", str(tmp_path / "runs"), "--reports-dir", str(tmp_path / "reports")]
    done = CliRunner().invoke(app, ["run", str(tmp_path / "run.yaml"), *folders])
    assert done.exit_code == 0, done.output

    report = tmp_path / "reports" / "portability"
    with (report / "targets.csv").open(encoding="utf-8") as table:
        found = {(row["agent"], row["target"]): row["outcome"] for row in csv.DictReader(table)}
    assert found == {
        ("assumes_32_lanes", "gfx942"): "built",
        ("assumes_32_lanes", "sm_90"): "built",
        ("amd_builtin", "gfx942"): "built",
        ("amd_builtin", "sm_90"): "failed",
        ("inline_ptx", "gfx942"): "failed",
        ("inline_ptx", "sm_90"): "built",
    }
    page = (report / "index.html").read_text(encoding="utf-8")
    for words in ("wave size dependent", "amd only", "nvidia only", "Builds only where it was written"):
        assert words in page, words
    summary = (report / "summary.md").read_text(encoding="utf-8")
    assert "amd_builtin" in summary and "inline_ptx" in summary
