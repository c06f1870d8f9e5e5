"""Published kernels are found with their claims, and get the task whose source names their problem."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from arena.cli import regrade
from arena.errors import UsageError
from arena.integrations.published.sources import FORMATS, Claim, published
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import Task

KERNEL = "class Model: ...\n"


@pytest.fixture
def tasks() -> dict[str, Task]:
    """Two tasks whose sources name problems of others."""
    task = load_task(TASKS / "triton2triton/normalization/rms_norm")
    found = {
        "torch2triton/deck/topk": "x/y at 123, benchmarks/hard/problems-h100/05_topk_bitonic/reference.py",
        "torch2triton/kernelbench_level1/p019_relu": "KernelBench level1/19_ReLU.py",
    }
    return {name: replace(task, id=name, source=source) for name, source in found.items()}


def write(file: Path, text: str = KERNEL) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_a_checkout_of_kernelbench_com(tmp_path: Path, tasks: dict[str, Task]) -> None:
    name = "20260618_041709_claude_opus_05_topk_bitonic"
    facts = {"harness": "claude", "model": "opus/5", "problem": "05_topk_bitonic", "correct": True}
    for number in (1, 2):
        write(tmp_path / f"public/runs/h100/{number}{name}_solution.py.txt", f"{KERNEL}# {number}\n")
    detail = {**facts, "peak_fraction": 1, "annotation_verdict": None}
    write(tmp_path / f"public/data/rundetail/h100/1{name}.json", json.dumps(detail))
    write(tmp_path / f"public/data/rundetail/h100/2{name}.json", json.dumps({**facts, "correct": "yes"}))
    write(tmp_path / "public/runs/h100/3_x_01_fp8_gemm_solution.py.txt", "load_inline\n")
    first, second, other = published(tmp_path, "kernelbench.com", tasks)
    assert (first.kernel.agent, first.kernel.task) == ("claude-opus-5.h100", "torch2triton/deck/topk")
    assert first.kernel.claim == Claim(correct=True, peak_fraction=1.0) and second.kernel.claim == Claim()
    assert (first.kernel.attempt, second.kernel.attempt) == (1, 2)
    assert first.kernel.sha256 == hashlib.sha256(first.text).hexdigest()
    assert other.kernel.lack == "no task has this problem"


def test_kernels_of_kernelbench_by_level_and_number(tmp_path: Path, tasks: dict[str, Task]) -> None:
    write(tmp_path / "run/level_1_problem_19_sample_3_kernel.py")
    write(tmp_path / "own/level1/19_ReLU.py")
    write(tmp_path / "own/level1/20_LeakyReLU.py")
    found = {one.kernel.path: one.kernel.task for one in published(tmp_path, "kernelbench", tasks)}
    assert found == {
        "run/level_1_problem_19_sample_3_kernel.py": "torch2triton/kernelbench_level1/p019_relu",
        "own/level1/19_ReLU.py": "torch2triton/kernelbench_level1/p019_relu",
        "own/level1/20_LeakyReLU.py": "",
    }


def test_rows_are_chosen_and_what_is_wrong_is_said(tmp_path: Path, tasks: dict[str, Task]) -> None:
    for agent in ("one", "two"):
        write(tmp_path / agent / "torch2triton/deck/topk/kernel.py")
    write(tmp_path / "claims.json", json.dumps({"one/torch2triton/deck/topk/kernel.py": {"speedup": 2.5}}))
    (one,) = published(tmp_path, "folder", tasks, ["one/*"])
    assert one.kernel.claim.speedup == 2.5 and one.kernel.row == "one/torch2triton/deck/topk/1"
    with pytest.raises(UsageError, match="no row fits; the first is one/"):
        published(tmp_path, "folder", tasks, ["three/*"])
    with pytest.raises(UsageError, match=r"expected one of: kernelbench\.com"):
        published(tmp_path, "zip", tasks)
    with pytest.raises(UsageError, match="holds no kernel"):
        published(tmp_path / "one", "kernelbench.com", tasks)


def test_published_sizes_are_the_timed_ones_where_small_cases_are_ours(tmp_path: Path, tasks: dict[str, Task]) -> None:
    write(tmp_path / "level_1_problem_19_sample_0_kernel.py")
    (one,) = published(tmp_path, "kernelbench", tasks)
    task = tasks["torch2triton/kernelbench_level1/p019_relu"]
    assert one.kernel.cases == tuple(case.id for case in task.seen if case.timed) != ()
    write(tmp_path / f"agent/{task.id}/kernel.py")
    found = {one.kernel.task: one.kernel.cases for one in published(tmp_path, "folder", {task.id: task})}
    assert found[task.id] == tuple(case.id for case in task.seen)


def test_nobody_has_published_the_regimes_of_a_size(tmp_path: Path, tasks: dict[str, Task]) -> None:
    name, task = next(iter(tasks.items()))
    regime = replace(task.seen[-1], id=f"{task.seen[-1].id}.skewed", regime="skewed")
    write(tmp_path / f"agent/{name}/kernel.py")
    (one,) = published(tmp_path, "folder", {name: replace(task, seen=(*task.seen, regime))})
    assert one.kernel.cases == tuple(case.id for case in task.seen)


def test_a_folder_inside_of_another_checkout_has_no_commit(tmp_path: Path, tasks: dict[str, Task]) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    write(tmp_path / "kept/level_1_problem_19_sample_0_kernel.py")
    subprocess.run([*git, "add", "kept"], check=True)
    subprocess.run([*git, "commit", "-qm", "one"], check=True)
    write(tmp_path / "other/level_1_problem_19_sample_0_kernel.py")
    commits = [published(tmp_path / name, "kernelbench", tasks)[0].kernel.commit for name in ("kept", "other")]
    assert len(commits[0]) == 40 and commits[1] == ""


def test_cuda_l1_has_a_problem_a_line(tmp_path: Path, tasks: dict[str, Task]) -> None:
    lines = [
        {"level_id": 1, "task_id": 19, "custom_code": KERNEL, "score_default": 3},
        {"level_id": 1, "task_id": 19, "custom_code": None, "score_default": None},
        {"level_id": 1, "task_id": 20, "custom_code": KERNEL, "score_default": None},
    ]
    text = "\n".join([*map(json.dumps, lines), "no JSON", "[1]"])
    write(tmp_path / "optimized_cuda_code/h100.json", text)
    first, second = published(tmp_path, "cuda-l1", tasks)
    assert (first.kernel.agent, first.kernel.task) == ("cuda-l1.h100", "torch2triton/kernelbench_level1/p019_relu")
    assert first.kernel.claim == Claim(correct=True, speedup=3.0) and second.kernel.claim == Claim()
    assert first.kernel.path == "optimized_cuda_code/h100.json:1" and first.text == KERNEL.encode()
    assert second.kernel.lack == "no task has this problem"


def test_the_help_of_the_command_names_every_format() -> None:
    assert [name for name in FORMATS if name not in regrade._FORM] == []
