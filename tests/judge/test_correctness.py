"""How often a case is called: for every seed and once more, or until it has taken long enough."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from arena.judge.correctness import sampled
from arena.judge.correctness import stage as correctness
from arena.judge.correctness.buffers import Sets
from arena.judge.correctness.inputs import secret_generator
from arena.judge.correctness.stage import CorrectnessCheck
from arena.judge.correctness.verify import OutputCheck, check_outputs
from arena.platforms.cpu.platform import CpuPlatform
from arena.processes.protocol import Call, Done
from arena.results.messages import bare
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import LARGE, Arguments, Task, arguments
from arena.task.numerics.reference import Reference

SEEDS = 3


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


def checked(
    monkeypatch: pytest.MonkeyPatch,
    worker: Counting,
    case: Arguments,
    reference: Reference,
    enough_s: float = math.inf,
) -> OutputCheck:
    """What is said of a worker that answers in the judge's own buffer."""

    def sets(*given: Any) -> Sets:
        worker.sets = [Sets(*given)]
        return worker.sets[0]

    monkeypatch.setattr(correctness, "Sets", sets)
    worker_program: Any = SimpleNamespace(ready=lambda case: worker)
    return CorrectnessCheck(CpuPlatform(), reference, SEEDS, 1.0, enough_s).run(worker_program, case)


@pytest.mark.parametrize(
    ("enough_s", "wrong_later", "calls", "status"),
    [
        (math.inf, False, 4, Status.PASSED),
        (0.0, False, 1, Status.PASSED),
        (math.inf, True, 3, Status.WRONG_RESULT),  # once more in ascending order
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
    assert checked(monkeypatch, worker, case, Reference(task.reference_path), enough_s).status is status
    assert worker.calls == calls


class Once(Counting):
    """The second call on the same inputs is a little off, or does other rounding, or is the same."""

    def __init__(self, factor: float) -> None:
        super().__init__(wrong_later=False)
        self._factor = factor

    def ask(self, message: object, *given: object) -> Done:
        done = super().ask(message, *given)
        if isinstance(message, Call) and self.calls == SEEDS + 1:
            self.sets[0].view("y").mul_(self._factor)
        return done


@pytest.mark.parametrize(
    ("factor", "kind", "references", "status"),
    [
        (1.0, "", SEEDS, Status.PASSED),
        (1.0, LARGE, SEEDS + 1, Status.PASSED),
        (1.0 + 2.0**-22, "", SEEDS + 1, Status.PASSED),
        (1.5, "", SEEDS + 1, Status.NONDETERMINISTIC),
    ],
)
def test_the_reference_is_asked_again_only_where_a_call_left_other_bits(
    task: Task, monkeypatch: pytest.MonkeyPatch, factor: float, kind: str, references: int, status: Status
) -> None:
    """The last inputs are given twice, and what was right the first time is right; of a large case it is a sample."""
    worker, asked = Once(factor), []
    case = arguments(replace(task, independent="M"), replace(task.seen[0], kind=kind))

    def reference(*given: Any) -> dict[str, torch.Tensor]:
        asked.append(given)
        return computed(*given)

    computed = Reference.__call__
    monkeypatch.setattr(Reference, "__call__", reference)
    assert checked(monkeypatch, worker, case, Reference(task.reference_path)).status is status
    assert len(asked) == references


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
    finding = checked(monkeypatch, ForgetsTheLastRow(wrong_later=False), case, Reference(task.reference_path))
    rows, columns = int(case.names["M"]), int(case.names["N"])
    said = f"y: {columns} of {rows * columns} elements not written, [{rows - 1}, 0] to [{rows - 1}, {columns - 1}]"
    assert finding.status is Status.WRONG_RESULT and bare(finding.detail) == f"{said}: from row {rows - 1} of {rows} on"


class InThirtyTwoBits(Counting):
    """A kernel whose offsets wrap round at `LIMIT` elements, where it writes, or only where it reads."""

    LIMIT = 1024

    def __init__(self, *, reads_alone: bool) -> None:
        super().__init__(wrong_later=False)
        self._reads_alone = reads_alone

    def ask(self, message: object, *rest: object) -> Done:
        (sets,) = self.sets
        x, y = sets.view("x")[0], sets.view("y")[0]
        kept_x, kept_y = x.clone(), y.clone()
        wrapped = torch.arange(x.numel()) % self.LIMIT
        if self._reads_alone:
            x.view(-1)[:] = kept_x.view(-1)[wrapped]
        done = super().ask(message, *rest)
        x[:] = kept_x
        if not self._reads_alone and isinstance(message, Call):
            right = y.clone()
            y[:] = kept_y
            y.view(-1)[wrapped] = right.view(-1)
        return done


class OnlyThese(Reference):
    """Notes how many rows it is asked for."""

    def __call__(self, worked_out: Arguments, inputs: Any) -> dict[str, torch.Tensor]:
        self.rows = len(inputs["x"])
        return super().__call__(worked_out, inputs)


@pytest.mark.parametrize(
    ("worker", "says"),
    [
        (Counting(wrong_later=False), ""),
        (InThirtyTwoBits(reads_alone=False), "y: not written"),
        (InThirtyTwoBits(reads_alone=True), "sampled rows of 200: y: "),
    ],
)
def test_rows_of_a_large_case_are_sampled_and_its_poison_checked_everywhere(
    task: Task, monkeypatch: pytest.MonkeyPatch, worker: Counting, says: str
) -> None:
    whole = replace(task, independent="M")
    values = {**task.seen[0].values, "M": 200, "N": 24}
    large = arguments(whole, replace(task.heldout[0], kind=LARGE, values=values))
    reference = OnlyThese(task.reference_path)
    finding = checked(monkeypatch, worker, large, reference)
    assert (finding.status is Status.PASSED) == (not says) and says in finding.detail
    assert "not written" in says or reference.rows < 80


def test_a_sample_has_the_first_and_the_last_row_and_is_another_each_time(task: Task) -> None:
    values = {**task.seen[0].values, "M": 5000, "N": 24}
    large = arguments(replace(task, independent="M"), replace(task.heldout[0], kind=LARGE, values=values))
    some, others = (sampled.secret_rows(large, secret_generator("cpu")).tolist() for _ in range(2))
    assert some != others and {0, 4999} <= {*some} & {*others} and len(some) <= 66 and some == sorted({*some})


def test_a_sample_of_long_rows_has_few_of_them(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled, "_MOST_ELEMENTS", 240)
    values = {**task.seen[0].values, "M": 5000, "N": 24}
    large = arguments(replace(task, independent="M"), replace(task.heldout[0], kind=LARGE, values=values))
    assert len(sampled.secret_rows(large, secret_generator("cpu"))) <= 12


def test_a_reference_of_no_tensors_computes_where_the_outputs_are() -> None:
    """On the CPU the order of a billion programs took 0.9 s for each call that is compared."""
    task = load_task(TASKS / "triton2triton/fundamentals/swizzle2d")
    given, seen = arguments(task, task.seen[0]), []

    def reference(*_: object) -> dict[str, torch.Tensor]:
        seen.append(torch.arange(3).device.type)
        raise Seen

    with pytest.raises(Seen):
        check_outputs(given, reference, {}, {"order": torch.empty(1, device="meta")})  # type: ignore[arg-type]
    assert seen == ["meta"] and torch.arange(3).device.type == "cpu"


class Seen(Exception):
    """It has been called, which is enough."""
