"""How often a case is called: for every seed and once more, or until it has taken long enough."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from arena.judge import correctness
from arena.judge.buffers import Sets
from arena.judge.correctness import CorrectnessCheck
from arena.model.task import Arguments, Task
from arena.model.verdict import Status
from arena.numerics.reference import Reference
from arena.platforms.cpu import CpuPlatform
from arena.protocol import Call, Done


class Counting:
    """A worker that answers every `rms_norm` in the judge's buffer; from the second call on wrongly, if told so."""

    def __init__(self, wrong_later: bool) -> None:
        self.calls, self._wrong_later = 0, wrong_later
        self.sets: list[Sets] = []

    def ask(self, message: object, *_: object) -> Done:
        if isinstance(message, Call):
            (sets,) = self.sets
            x, weight = sets.view("x"), sets.view("weight")
            inverse = torch.rsqrt(x.square().mean(-1, keepdim=True) + float(sets.arguments.names["eps"]))
            sets.view("y")[:] = x * inverse * weight[:, None] * (2 if self._wrong_later and self.calls else 1)
            self.calls += 1
        return Done(0.0)

    def stop(self) -> None:
        """It has no process."""

    def release(self, timeout_s: float) -> None:
        """It keeps nothing."""


@pytest.mark.parametrize(
    ("enough_s", "wrong_later", "calls", "status"),
    [
        (math.inf, False, 4, Status.PASSED),
        (0.0, False, 1, Status.PASSED),
        (math.inf, True, 2, Status.WRONG_RESULT),
        (0.0, True, 1, Status.PASSED),
    ],
)
def test_a_case_that_has_taken_long_enough_is_not_called_again(
    case: Arguments,
    task: Task,
    monkeypatch: pytest.MonkeyPatch,
    enough_s: float,
    wrong_later: bool,
    calls: int,
    status: Status,
) -> None:
    worker = Counting(wrong_later)

    def sets(*given: Any) -> Sets:
        worker.sets = [Sets(*given)]
        return worker.sets[0]

    monkeypatch.setattr(correctness, "Sets", sets)
    check = CorrectnessCheck(CpuPlatform(), Reference(task.reference_path), 3, 1.0, enough_s)
    worker_program: Any = SimpleNamespace(ready=lambda case: worker)
    assert check.run(worker_program, case).status is status
    assert worker.calls == calls


class ForgetsTheLastRow(Counting):
    """Leaves poison in the last row."""

    def ask(self, message: object, *rest: object) -> Done:
        (sets,) = self.sets
        held = sets.view("y")[:, -1].clone()
        done = super().ask(message, *rest)
        sets.view("y")[:, -1] = held
        return done


def test_elements_that_were_not_written_are_counted_and_located(
    case: Arguments, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = ForgetsTheLastRow(wrong_later=False)

    def sets(*given: Any) -> Sets:
        worker.sets = [Sets(*given)]
        return worker.sets[0]

    monkeypatch.setattr(correctness, "Sets", sets)
    check = CorrectnessCheck(CpuPlatform(), Reference(task.reference_path), 3, 1.0)
    worker_program: Any = SimpleNamespace(ready=lambda case: worker)
    finding = check.run(worker_program, case)
    rows, columns = int(case.names["M"]), int(case.names["N"])
    said = f"y: {columns} of {rows * columns} elements not written, [{rows - 1}, 0] to [{rows - 1}, {columns - 1}]"
    assert finding.status is Status.WRONG_RESULT and finding.detail == f"{said}: from row {rows - 1} of {rows} on"
