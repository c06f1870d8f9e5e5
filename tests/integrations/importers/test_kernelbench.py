"""KernelBench's format: what becomes a task is an ordinary, checked one; all else is in the table, with a reason."""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path

import pytest
import torch

from arena.errors import UsageError
from arena.integrations.importers import kernelbench, table
from arena.integrations.importers.problem import Problem, Reason
from arena.integrations.importers.run import Importer, require_trust
from arena.integrations.importers.table import ProblemRow
from arena.judge.process.client import JudgeClient
from arena.results.effort import Effort
from arena.results.verdict import Status
from arena.task.corpus.corpora import open_corpora
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Task, TaskType, arguments
from arena.task.numerics.reference import Reference
from arena.task.options import Options
from tests.integrations.importers.problems import LINEAR, LOSS, MIXED, REFUSED, STRIDED, write

GOOD = {"linear": LINEAR, "mixed": MIXED}
MORE = {"strided": STRIDED, "loss": LOSS}


def run(checkout: Path, corpus: Path, task_type: TaskType = TaskType.TORCH2TRITON) -> dict[str, ProblemRow]:
    with Importer(corpus, task_type, kernelbench) as importer:
        rows = importer.run(kernelbench.find(checkout, [1]), lambda row: None)
    return {row.problem.partition("_")[2].removesuffix(".py"): row for row in rows}


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, ProblemRow]]]:
    root = tmp_path_factory.mktemp("kernelbench")
    yield root / "corpus", run(write(root, GOOD), root / "corpus")


def loaded(corpus: Path) -> dict[str, Task]:
    return {name.rpartition("_")[2]: task for name, task in open_corpora([corpus]).load_selected(["*"]).items()}


@pytest.fixture(scope="module")
def tasks(imported: tuple[Path, dict[str, ProblemRow]]) -> dict[str, Task]:
    return loaded(imported[0])


@pytest.fixture(scope="module")
def more_tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Task]:
    root = tmp_path_factory.mktemp("more")
    rows = run(write(root, MORE), root / "corpus")
    assert {name: (row.outcome, row.reason) for name, row in rows.items()} == dict.fromkeys(MORE, ("imported", ""))
    return loaded(root / "corpus")


def test_good_problems_become_tasks(imported: tuple[Path, dict[str, ProblemRow]], tasks: dict[str, Task]) -> None:
    assert {name: (row.outcome, row.reason) for name, row in imported[1].items()} == dict.fromkeys(
        GOOD, ("imported", "")
    ), [row.detail for row in imported[1].values()]
    check_tasks(tasks)


@pytest.mark.slow
def test_problems_with_strides_and_of_one_number_become_tasks(more_tasks: dict[str, Task]) -> None:
    check_tasks(more_tasks)


def check_tasks(tasks: dict[str, Task]) -> None:
    for task in tasks.values():
        assert task.task_type is TaskType.TORCH2TRITON and task.suite == "kernelbench_level1"
        assert len({case.kind for case in task.heldout}) >= 4
        assert {sum(case.timed for case in split) for split in (task.seen, task.heldout)} <= {2, 3, 4, 5}


def test_weights_are_inputs_and_those_without_effect_are_not(
    imported: tuple[Path, dict[str, ProblemRow]], tasks: dict[str, Task]
) -> None:
    """A bias in front of a normalization over the batch changes nothing."""
    names = [spec.name for spec in tasks["linear"].inputs]
    assert names == ["x", "layer_weight", "norm_weight", "norm_bias"]
    assert "layer_bias" in imported[1]["linear"].detail and "layer.bias" in tasks["linear"].summary


@pytest.mark.slow
def test_shapes_follow_strides_and_windows(more_tasks: dict[str, Task]) -> None:
    task = more_tasks["strided"]
    assert {axis.name: axis.low for axis in task.axes} == {"batch": 1, "channels": 1, "length": 8}
    for case in task.cases:
        shape = arguments(task, case).outputs[0].shape
        conv = (int(case.values["length"]) - 5) // 3 + 1
        assert shape == (case.values["batch"], 8, conv // 2)


def test_work_is_counted_as_pytorch_counts_it(tasks: dict[str, Task]) -> None:
    """All but the few operations that are no products."""
    from torch.utils.flop_counter import FlopCounterMode

    task = tasks["linear"]
    case = task.seen[0]
    known = arguments(task, case)
    inputs = {tensor.name: torch.randn(tensor.shape) for tensor in known.inputs}
    with FlopCounterMode(display=False) as counter:
        Reference(task.reference_path)(known, inputs)
    elements = known.outputs[0].numel
    assert counter.get_total_flops() < known.flops <= counter.get_total_flops() + 10 * elements


def test_inputs_are_drawn_as_the_problem_draws_them(tasks: dict[str, Task]) -> None:
    fills = {s.name: s.fill.kind for s in tasks["mixed"].tensors if s.fill is not None}
    assert fills == {"x": "normal", "mask": "bernoulli", "table": "normal", "index": "integers"}
    bounds = next(s.fill.arguments["high"] for s in tasks["mixed"].tensors if s.name == "index" and s.fill is not None)
    assert getattr(bounds, "text", "") == "words"
    scales = {case.values["scale"] for case in tasks["mixed"].cases}
    assert len(scales) > 1
    assert {axis.name for axis in tasks["mixed"].axes} == {"n_size", "words", "width"}


def test_large_sizes_are_scaled_to_fit(tasks: dict[str, Task]) -> None:
    for task in tasks.values():
        timed = [arguments(task, case) for case in task.cases if case.timed]
        assert max(known.held_bytes for known in timed) <= 1 << 30
        assert min(known.held_bytes for known in timed) >= 1 << 20


@pytest.mark.slow
def test_a_number_has_one_dimension(more_tasks: dict[str, Task]) -> None:
    assert arguments(more_tasks["loss"], more_tasks["loss"].seen[0]).outputs[0].shape == (1,)


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, ProblemRow]]:
    root = tmp_path_factory.mktemp("refused")
    return root / "corpus", run(write(root, REFUSED), root / "corpus")


@pytest.mark.slow
@pytest.mark.parametrize("reason", list(Reason))
def test_a_refused_problem_is_listed_and_leaves_no_task(
    refused: tuple[Path, dict[str, ProblemRow]], reason: Reason
) -> None:
    corpus, rows = refused
    row = rows[reason.value.replace(" ", "_")]
    assert (row.outcome, row.reason) == ("skipped", reason.value), row.detail
    assert row.detail and not (corpus / row.task).exists()
    assert table.read(corpus)[row.task] == row


@pytest.mark.slow
def test_an_import_continues_where_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = write(tmp_path, {"random": REFUSED["random"], "strided": STRIDED})
    first = run(checkout, tmp_path / "corpus")
    read: list[str] = []
    original = kernelbench.read

    def counted(path: Path, **rest: Container[str]) -> Problem:
        read.append(path.name)
        return original(path, **rest)

    monkeypatch.setattr(kernelbench, "read", counted)
    assert run(checkout, tmp_path / "corpus") == first and not read
    (tmp_path / "corpus" / first["strided"].task / "task.yaml").unlink()
    changed = checkout / "KernelBench/level1/1_random.py"
    changed.write_text(changed.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    again = run(checkout, tmp_path / "corpus")
    assert set(read) == {"1_random.py", "2_strided.py"} and again["strided"].outcome == "imported"


@pytest.mark.slow
def test_the_same_operator_twice_is_one_task(tmp_path: Path) -> None:
    rows = run(write(tmp_path, {"one": STRIDED, "two": STRIDED}), tmp_path / "corpus")
    assert rows["one"].outcome == "imported"
    assert "p001_one under another name" in rows["two"].detail


KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, target_ptr, y_ptr, count, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        difference = tl.load(x_ptr + i, mask=i < count, other=0.0) - tl.load(target_ptr + i, mask=i < count, other=0.0)
        total += difference * difference
    tl.store(y_ptr, tl.sum(total) / count)


def p002_loss(x, target, y):
    mean_kernel[(1,)](x, target, y, x.numel(), BLOCK=1024)
"""


@pytest.mark.slow
def test_a_kernel_is_judged_on_an_imported_task(
    more_tasks: dict[str, Task], cpu_judge: JudgeClient, tmp_path: Path
) -> None:
    kernel = tmp_path / "kernel.py"
    verdicts = []
    for text in (KERNEL, KERNEL.replace("difference * difference", "difference")):
        kernel.write_text(text, encoding="utf-8")
        options = Options(effort=Effort.CORRECTNESS, seeds=1)
        verdicts.append(cpu_judge.evaluate(more_tasks["loss"].path, kernel, options).status)
    assert verdicts == [Status.PASSED, Status.WRONG_RESULT]


def test_a_checkout_must_be_trusted(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"without a sandbox.*add --trust"):
        require_trust(False, tmp_path)
    with pytest.raises(UsageError, match="no such folder"):
        require_trust(True, tmp_path / "nowhere")
    with pytest.raises(UsageError, match="no folder KernelBench/level2"):
        kernelbench.find(write(tmp_path, {}), [2])


@pytest.mark.slow
def test_an_imported_task_of_another_type_has_the_same_cases(more_tasks: dict[str, Task], tmp_path: Path) -> None:
    row = run(write(tmp_path, {"strided": STRIDED}), tmp_path / "corpus", TaskType.TORCH2HIP)["strided"]
    other = load_task(tmp_path / "corpus" / row.task)
    assert other.task_type is TaskType.TORCH2HIP
    assert [spec.name for spec in other.inputs] == [spec.name for spec in more_tasks["strided"].inputs]
