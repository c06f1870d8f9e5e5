"""A model against the real judge, by the command line: from the configuration to the report."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arena.cli.app import app
from arena.platforms.toolchains.kernel_library import OFFERS, headers
from arena.results.record import Split
from arena.results.verdict import Status
from arena.runs.records import read_run
from arena.task.corpus.task_folder import TASKS
from tests.agents.chat.standin import endpoint, says
from tests.agents.chat.trials import KEY

BASELINE = (TASKS / "triton2triton/normalization/rms_norm/kernel.py").read_text(encoding="utf-8")
WRONG = BASELINE.replace("x * inverse_rms * weight", "x * inverse_rms")
RIGHT = BASELINE.replace("BLOCK=512", "BLOCK=2048")
CONFIG = """
name: asked
platform: cpu
tasks: [rms_norm]
attempts: 1
agents: [{kind: ./refining.yaml}]
evaluation: {max_work: 2.0e+5, timing_budget_s: 0.1, call_timeout_s: 20}
"""
DEFINITION = """
name: refining
about: Two answers.
base_url: URL
model: asked-for
api_key_env: TEST_MODEL_KEY
turns: 2
price: {input: 2, output: 10}
"""


def answer(code: str) -> str:
    return f"The kernel:\n\n```python\n{code}```\n"


@pytest.mark.slow
def test_a_wrong_kernel_its_feedback_and_a_right_one(tmp_path: Path) -> None:
    (tmp_path / "asked.yaml").write_text(CONFIG)
    with endpoint(says(answer(WRONG)), says(answer(RIGHT), usage=(5000, 700, 0))) as server:
        (tmp_path / "refining.yaml").write_text(DEFINITION.replace("URL", server.url))
        folders = ["--runs-dir", str(tmp_path / "runs"), "--reports-dir", str(tmp_path / "reports")]
        done = CliRunner().invoke(app, ["run", str(tmp_path / "asked.yaml"), *folders])
    assert done.exit_code == 0, done.output
    (trial,) = read_run(tmp_path / "runs" / "asked").trials
    assert trial.status is Status.PASSED and trial.session is not None and trial.evaluation is not None
    assert [one.status for one in trial.session.evaluations] == [Status.WRONG_RESULT, Status.PASSED]
    assert trial.evaluation.split(Split.HELDOUT) and trial.session.cost_usd == pytest.approx(0.0174)
    told = server.last_message
    assert "wrong_result in correctness" in told and "elements wrong" in told and "seen-01" in told
    assert "heldout" not in told and "held-out" not in told
    with (tmp_path / "reports" / "asked" / "measures.csv").open(encoding="utf-8") as file:
        measured = {row["measure"]: row["value"] for row in csv.DictReader(file) if row["agent"] == "refining"}
    assert float(measured["pass_at_1"]) == 1.0 and float(measured["tokens_per_solved"]) == 5820
    assert float(measured["cost_per_solved"]) == pytest.approx(0.0174)
    shown = CliRunner().invoke(app, ["transcript", str(tmp_path / "runs" / "asked" / "refining" / "rms_norm")])
    assert "sample 1, turn 2" in shown.output and "wrong_result" in shown.output


def test_the_prompt_of_the_command_line_is_what_a_model_is_asked(tmp_path: Path) -> None:
    """Text, kernel, reference and cases, nothing held out; the only difference is where it runs."""
    shown = CliRunner().invoke(app, ["tasks", "prompt", "rms_norm", "--platform", "cpu", "--turns", "2"])
    as_json = CliRunner().invoke(app, ["tasks", "prompt", "rms_norm", "--platform", "cpu", "--json"])
    assert shown.exit_code == 0 and as_json.exit_code == 0
    parts = json.loads(as_json.stdout)
    folder = TASKS / "triton2triton/normalization/rms_norm"
    for name in ("kernel.py", "reference.py", "seen.yaml"):
        assert parts["files"][name] == (folder / name).read_text(encoding="utf-8")
        assert parts["files"][name].rstrip() in parts["prompt"]
    assert parts["text"].rstrip() in parts["prompt"] and parts["entry"] == "rms_norm" and parts["kernel"] == "kernel.py"
    assert "You have 2 answers" in shown.stdout and "You have one answer" in parts["prompt"]
    heldout = (folder / "heldout.yaml").read_text(encoding="utf-8").splitlines()
    assert not [line for line in heldout if line in parts["prompt"]]
    assert KEY not in shown.stdout


@pytest.mark.parametrize(
    ("task", "shown"),
    [
        ("hip2hip/modules/gelu", set()),
        ("torch2hip/modules/softmax", set()),
        ("hip2hip/modules/softmax", {"headers/block.h"}),
        ("hip2hip/modules/transformer_ffn", {"headers/product.h", "headers/matrix.h"}),
    ],
)
def test_a_model_is_shown_the_headers_that_the_baseline_includes(task: str, shown: set[str]) -> None:
    done = CliRunner().invoke(app, ["tasks", "prompt", task, "--platform", "cpu", "--json"])
    parts = json.loads(done.stdout)
    assert {name for name in parts["files"] if name.startswith("headers/")} == shown
    assert all(f"- `headers/{name}`: {offers}" in parts["text"] for name, offers in OFFERS.items())
    assert len(parts["text"].split()) < 2000
    assert "gelu" not in task or len(parts["prompt"].split()) < 2500


def test_every_header_of_the_library_has_a_line() -> None:
    assert OFFERS.keys() == headers().keys()


@pytest.mark.parametrize("platform", ["auto", "cpu"])
def test_a_prompt_needs_no_pytorch(platform: str) -> None:
    code = "import sys; sys.modules['torch'] = None; from arena.cli import main; main()"
    command = [sys.executable, "-c", code, "tasks", "prompt", "rms_norm", "--platform", platform]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "It must define `rms_norm`" in done.stdout, done.stderr
