"""The tool that executes AMD machine code: one task of each language, and what it says of results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from arena.task.corpus.task_folder import TASKS, load_task
from tests.platforms.test_amd_isa_launch import needs_clang
from tests.shipped import shipped_tasks
from tests.tools import load

ROOT = Path(__file__).resolve().parents[2]
ONE = ROOT / "tools/machine_code/one_kernel.py"
tool = load("amd_machine_code")


def run(task_id: str, way: str) -> Any:
    needs_clang()
    task = load_task(TASKS / task_id)
    environment = {**os.environ, "TRITON_DEFAULT_FP_FUSION": "1", "PYTHONPATH": str(ROOT)}
    environment.pop("TRITON_INTERPRET", None)
    if way == "source":
        environment["TRITON_INTERPRET"] = "1"
    command = [sys.executable, str(ONE), task_id, str(task.trusted_kernel), way, "gfx942", "smallest", "together", "60"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=110, check=True)
    return tool.Result(**json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.slow
@pytest.mark.parametrize("way", ["machine", "source"])
@pytest.mark.parametrize("task_id", ["hip2hip/modules/softmax", "triton2triton/attention/merge_attn_states"])
def test_a_baseline_is_right_in_both_ways(task_id: str, way: str) -> None:
    result = run(task_id, way)
    assert (result.outcome, bool(result.mnemonics)) == ("right", way == "machine"), result.detail


@pytest.mark.slow
def test_every_task_has_a_kernel_to_run() -> None:
    corpus = shipped_tasks()
    assert len(list(tool.jobs(corpus, ["*"], experts=False))) == len(corpus)
    experts = list(tool.jobs(corpus, ["*"], experts=True))
    assert 0 < len(experts) < len(corpus)
    assert all(kernel.name.startswith("expert.") for _, kernel in experts)


def test_the_report_counts_outcomes_and_fails_for_wrong_ones(capsys: pytest.CaptureFixture[str]) -> None:
    task = load_task(TASKS / "hip2hip/modules/softmax")
    right = tool.Result("right", "", 0.25, "M=1", {"s_endpgm": 1, "v_add_f32": 3})
    unknown = tool.Result("not_checked", "instruction v_made_up", 0.0, "M=1", {})
    wrong = tool.Result("wrong", "y: 3 elements", 0.5, "M=1", {"s_endpgm": 1})
    assert tool.report([(task, right, right), (task, unknown, None)], mnemonics=True) == 0
    said = capsys.readouterr().out
    assert "2 kernels: 1 right, 1 not_checked" in said
    assert "right in machine code and source-level emulation: 1" in said
    assert "instruction v_made_up" in said and "3    1 v_add_f32" in said
    assert tool.report([(task, wrong, right)], mnemonics=False) == 1
