"""Candidates built for GPUs that are not here. What to expect stands in the first line of `tests/portability/*/*`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from arena.errors import InfrastructureError
from arena.judge.compile import cross_compile
from arena.judge.compile.cross_compile import CrossCompilation, KnownIndices, Limit, _compile_triton, arguments_only
from arena.judge.correctness.inputs import draw_secret
from arena.judge.process.client import JudgeClient
from arena.platforms.cross.compilers import hip_cross_toolchain
from arena.results.portability import BuildOutcome, TargetBuild, one_vendor_only
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import Arguments, Case, Task, TaskType
from arena.task.numerics.reference import Reference
from arena.task.options import Options
from tests.candidates import TASK_OF, assembled, candidates, name

FILES = candidates("portability")
LIMIT = Limit(60.0)


@pytest.fixture(scope="module")
def cross_compilation() -> Iterator[CrossCompilation]:
    kept = CrossCompilation()
    yield kept
    kept.close()


def expected(path: Path) -> dict[str, bool]:
    """Target → whether the candidate builds: `builds: gfx942 sm_90; not: gfx90a`."""
    head = path.read_text(encoding="utf-8").splitlines()[0]
    said = {word: targets.split() for word, targets in re.findall(r"(builds|not): ([\w ]+)", head)}
    assert said, f"{path} does not say what to expect"
    return {t: word == "builds" for word, targets in said.items() for t in targets}


def few_cases(task: Task) -> list[Case]:
    """For Triton one case per dtype, and the largest; for HIP, where every dtype takes a compiler's second, one."""
    if task.task_type is TaskType.HIP2HIP:
        return [task.seen[-1]]
    return [*{case.values["dtype"]: case for case in task.seen}.values(), task.seen[-1]]


def test_nothing_asked_for_costs_nothing(tmp_path: Path) -> None:
    """Not even the arguments of a case, of which the largest take half a minute to draw."""
    task = load_task(TASKS / "triton2triton/normalization/rms_norm")
    assert CrossCompilation().build(task, tmp_path / "not there", task.cases, (), LIMIT, _never) == ()


@pytest.mark.slow
def test_each_signature_once_is_less_work_and_finds_what_does_not_build(
    cross_compilation: CrossCompilation, tmp_path: Path
) -> None:
    task = load_task(TASKS / "triton2triton/normalization/rms_norm")
    assert task.baseline_kernel is not None
    lanes = {
        once: _compile_triton(
            cross_compilation.fork_servers,
            task,
            task.baseline_kernel,
            task.cases,
            ["sm_90"],
            replace(LIMIT, once=once),
            _unheard,
        )[0]
        for once in (False, True)
    }
    assert all(lane.result().outcome is BuildOutcome.BUILT for lane in lanes.values())
    assert all(lane.result().builds == len(task.cases) for lane in lanes.values())
    assert len({case.values["dtype"] for case in task.cases}) <= len(lanes[True]._kernels) < len(lanes[False]._kernels)
    spoiled = tmp_path / "kernel.py"
    text = task.baseline_kernel.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if "tl.program_id" in line)
    indent = line[: len(line) - len(line.lstrip())]
    spoiled.write_text(
        text.replace(line, f"{indent}tl.static_assert(x_ptr.dtype.element_ty != tl.float16)\n{line}"), encoding="utf-8"
    )
    result = cross_compilation.build(task, spoiled, task.cases, ["sm_90"], replace(LIMIT, once=True), _unheard)[0]
    assert result.outcome is BuildOutcome.FAILED
    assert "float16" in result.detail


def _unheard(done: int, total: int) -> None:
    """Nobody follows the progress."""


def _never(done: int, total: int) -> None:
    pytest.fail(f"{done} of {total} cases were gone through")


def build(cross_compilation: CrossCompilation, path: Path, folder: Path, targets: list[str]) -> dict[str, TargetBuild]:
    task = load_task(TASKS / TASK_OF[path.parent.name])
    done = cross_compilation.build(
        task, assembled(path, folder), few_cases(task), targets, LIMIT, lambda done, total: None
    )
    assert [each.target for each in done] == targets
    return {each.target: each for each in done}


def available(path: Path, targets: dict[str, bool]) -> list[str]:
    """The targets that this machine can compile for; skips where there is none."""
    if path.suffix == ".py":
        return list(targets)
    found = []
    for target in targets:
        try:
            hip_cross_toolchain(target)
        except InfrastructureError:
            continue
        found.append(target)
    return found or pytest.skip("no cross compiler for HIP")


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=name)
def test_what_builds_for_what(cross_compilation: CrossCompilation, path: Path, tmp_path: Path) -> None:
    wanted = expected(path)
    for target, found in build(cross_compilation, path, tmp_path, available(path, wanted)).items():
        assert (found.outcome is BuildOutcome.BUILT) == wanted[target], (target, found.outcome, found.detail)
        if found.outcome is BuildOutcome.BUILT:
            assert found.kernels and all(0 < use.registers <= 512 for use in found.kernels)
            assert all(use.occupancy is not None and 0 < use.occupancy <= 1 for use in found.kernels)
        else:
            assert len(found.detail) > 20


def test_an_unknown_backend_is_not_checked(
    cross_compilation: CrossCompilation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.platforms.cross.triton.missing", lambda target: "no backend")
    path = next(path for path in FILES if path.stem == "autotuned")
    found = build(cross_compilation, path, tmp_path, ["gfx942"])["gfx942"]
    assert found == replace(
        found,
        outcome=BuildOutcome.NOT_CHECKED,
        detail="no backend; see `arena doctor` [target_compiler_missing]",
        builds=0,
        kernels=(),
    )


@pytest.mark.slow
def test_shared_memory_beyond_the_device_is_named(cross_compilation: CrossCompilation, tmp_path: Path) -> None:
    path = next(path for path in FILES if path.stem == "too_much_shared")
    found = build(cross_compilation, path, tmp_path, ["gfx942", "sm_90"])
    assert "out of resource: shared memory" in found["gfx942"].detail and "65536" in found["gfx942"].detail
    assert max(use.shared_bytes for use in found["sm_90"].kernels) > 65536


@pytest.mark.slow
def test_targets_are_no_gate(cpu_judge: JudgeClient, tmp_path: Path) -> None:
    path = next(path for path in FILES if path.stem == "inline_ptx" and path.suffix == ".py")
    options = Options(heldout=False, seeds=1, max_work=5e4, timing_budget_s=0.05, targets=("gfx942", "sm_90"))
    evaluation = cpu_judge.evaluate(TASKS / TASK_OF["rms_norm"], assembled(path, tmp_path), options)
    assert evaluation.status is Status.LAUNCH_ERROR, "the interpreter knows no PTX"
    amd, nvidia = evaluation.targets
    assert (amd.outcome, nvidia.outcome) == (BuildOutcome.FAILED, BuildOutcome.BUILT)
    assert nvidia.builds == len(load_task(TASKS / TASK_OF["rms_norm"]).seen), "every seen case, however large"
    assert one_vendor_only(evaluation.targets) == "nvidia"


def test_indices_of_a_case_are_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing runs, it is enough that they are valid; data are zeros, drawn or not."""
    task = load_task(TASKS / "triton2triton/linear_attention/kda_gla_fwd_o")
    reference, known = Reference(task.reference_path), KnownIndices()
    drawn: list[str] = []

    def noted(arguments: Arguments, *given: Any, **more: Any) -> dict[str, torch.Tensor]:
        drawn.append(arguments.case.id)
        return draw_secret(arguments, *given, **more)

    monkeypatch.setattr(cross_compile, "draw_secret", noted)
    for case in (task.seen[0], task.seen[0], task.heldout[1]):
        sets = arguments_only(task, case, reference, known)
        lengths = sets.view("cu_seqlens")[0]
        assert int(lengths[-1]) == int(case.values["num_tokens"])
        sets.close()
    assert drawn == [task.seen[0].id, task.heldout[1].id]


def test_what_is_large_or_was_known_for_longest_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_compile, "_MOST_KEPT", 2)
    task, known = load_task(TASKS / "triton2triton/normalization/rms_norm"), KnownIndices()
    first, second, third, *_ = task.seen
    for case in (first, second, third):
        known.keep(task, case, {"rows": torch.arange(8), "x": torch.ones(8)})
    assert known.of(task, first) is None and list(known.of(task, third) or ()) == ["rows"]
    known.keep(task, first, {"rows": torch.zeros((1 << 20) + 1, dtype=torch.int8)})
    assert known.of(task, first) is None
