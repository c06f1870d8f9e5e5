"""What happens beside the stages of an evaluation."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.judge.crossing import Crossing
from arena.judge.device import Bench
from arena.judge.evaluate import Contest, Workshop
from arena.judge.hosts import Template
from arena.judge.messages import Options
from arena.model.task import Task
from arena.model.verdict import Stage, Status
from arena.platforms.cpu import CpuPlatform
from arena.taskfile.corpus import TASKS, load_task

QUICK = Options(heldout=False, seeds=1, max_work=1e4, timing_budget_s=0.01)


def unheard(stage: Stage, done: int, total: int) -> None:
    """Nobody follows the progress."""


@pytest.mark.system
def test_the_baselines_host_is_ready_when_its_turn_comes() -> None:
    """Also where the baseline is known, so that nothing else had to start it."""
    device, template, crossing = CpuPlatform(), Template("cpu", spins=False, interprets=True), Crossing()
    task: Task = load_task(TASKS / "triton2triton/normalization/rms_norm")
    kernel = task.starting_kernel
    assert isinstance(kernel, Path)
    shop = Workshop(Bench(device, device.facts()), template, crossing, {})
    try:
        for known_before in (False, True):
            assert bool(shop.book) is known_before
            contest = Contest(task, kernel, QUICK, shop)
            assert contest._compile(unheard).status is Status.PASSED
            contest._await_baseline()
            assert contest._baselines.subject.host.isolation
            contest._clean_up()
    finally:
        crossing.close()
        template.close()
