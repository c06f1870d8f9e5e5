"""Every module in `candidates` is judged as its folder says: with the real judge, on the CPU."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from msgspec import structs

from arena.errors import FileError
from arena.judge.correctness import buffers
from arena.judge.correctness.buffers import Sets, lay_out
from arena.judge.correctness.inputs import draw_inputs, secret_generator
from arena.judge.process.client import JudgeClient
from arena.platforms.cpu.platform import CpuPlatform
from arena.processes.protocol import ModuleCall
from arena.results.effort import Effort
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import arguments
from arena.task.numerics.reference import Reference
from arena.task.options import Options
from arena.worker.modules import _Modules, constructed

HERE = Path(__file__).with_name("candidates")
SOURCE = TASKS / "triton2triton/normalization/rms_norm"
MODULE = "module: {init: [N, eps], forward: [x], state: {weight: weight}}\n"
QUICK = ("parameter", "keeps_first_answer", "computes_by_pytorch", "other_names")
CANDIDATES = [
    pytest.param(path, id=f"{path.parent.name}-{path.stem}", marks=[pytest.mark.slow] if path.stem not in QUICK else [])
    for path in sorted(HERE.glob("*/*.py"))
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A task whose weight is constant, and which takes modules."""
    return made_in(tmp_path)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for all candidates: the judge knows its baseline after the first of them."""
    return made_in(tmp_path_factory.mktemp("judged"))


def made_in(root: Path) -> Path:
    made = root / "triton2triton/suite/rms_norm"
    shutil.copytree(SOURCE, made, ignore=shutil.ignore_patterns("__pycache__"))
    text = (made / "task.yaml").read_text(encoding="utf-8")
    changed = text.replace("{uniform: [0.5, 1.5]}}", "{uniform: [0.5, 1.5]}, constant: true}") + MODULE
    assert changed.count("constant: true") == 1
    (made / "task.yaml").write_text(changed, encoding="utf-8")
    return made


def evaluated(judge: JudgeClient, folder: Path, candidate: Path, place: Path) -> Status:
    text = (HERE / "_kernel.py").read_text(encoding="utf-8")
    file = place / "candidate.py"
    file.write_text(candidate.read_text(encoding="utf-8").replace("# <kernel>", text), encoding="utf-8")
    asked = Options(effort=Effort.CORRECTNESS, max_work=2e4, seeds=2, call_timeout_s=60.0)
    return judge.evaluate(folder, file, asked).status


@pytest.mark.parametrize("candidate", CANDIDATES)
def test_a_module_is_judged_as_its_folder_says(
    candidate: Path, judged: Path, cpu_judge: JudgeClient, tmp_path: Path
) -> None:
    assert evaluated(cpu_judge, judged, candidate, tmp_path) is Status(candidate.parent.name)


def test_a_module_is_no_candidate_where_the_task_takes_none(cpu_judge: JudgeClient, tmp_path: Path) -> None:
    candidate = HERE / "passed/parameter.py"
    assert evaluated(cpu_judge, SOURCE, candidate, tmp_path) is Status.LOAD_ERROR


def test_functions_are_judged_with_constants_too(judged: Path, cpu_judge: JudgeClient, tmp_path: Path) -> None:
    assert evaluated(cpu_judge, judged, judged / "kernel.py", tmp_path) is Status.PASSED


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("forward: [x]", "forward: [y]", "`y` is not an input"),
        ("forward: [x]", "forward: [weight]", "`x` is missing"),
        ("state: {weight: weight}", "state: {}", "must name each constant input"),
        ("constant: true", "constant: false", "must name each constant input"),
        ("constant: true", "constant: true, mutable: true", "must not be beside `mutable`"),
        ("init: [N, eps]", "init: [Q]", "`Q` is not an axis"),
    ],
)
def test_an_interface_that_does_not_fit_is_an_error(folder: Path, before: str, after: str, said: str) -> None:
    text = (folder / "task.yaml").read_text(encoding="utf-8")
    (folder / "task.yaml").write_text(text.replace(before, after), encoding="utf-8")
    with pytest.raises(FileError, match=re.escape(said)):
        load_task(folder)


def test_a_module_without_constants_lies_where_its_arguments_do() -> None:
    class Scratch(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scratch", torch.empty(4), persistent=False)

    how = ModuleCall(init=(), forward=("x",), state={}, zeros=(), results=("y",))
    made, _ = constructed(Scratch, how, {}, torch.device("meta"))
    assert made.scratch.device.type == "meta"


def test_a_constructor_computes_nothing_but_where_it_needs_what_it_computes() -> None:
    drawn = []

    class Draws(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(4, 4))
            drawn.append(self.weight.is_meta)

    class Keeps(Draws):
        def __init__(self) -> None:
            super().__init__()
            self.kept = {"table": [torch.arange(3)]}

    class Reads(Draws):
        def __init__(self) -> None:
            super().__init__()
            self.largest = float(torch.arange(3).max())

    how = ModuleCall(init=(), forward=("x",), state={"weight": "weight"}, zeros=(), results=("y",))
    given = {"weight": torch.ones(4, 4)}
    for kind, seen in ((Draws, [True]), (Keeps, [True, False]), (Reads, [True, False])):
        drawn.clear()
        made, _ = constructed(kind, how, given, torch.device("cpu"))
        assert drawn == seen
        assert not any(tensor.is_meta for tensor in (made.weight, *getattr(made, "kept", {}).get("table", ())))


def test_large_constants_lie_once_in_the_buffer_and_one_module_has_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of experts with 3 GiB of weights, five sets and as many modules left a GPU of 140 GiB no room to judge in."""
    task = load_task(folder)
    case = arguments(task, task.cases[0])
    before = lay_out(case, 5)[1]
    monkeypatch.setattr(buffers, "_LARGE_BYTES", 1)
    places, num_bytes = lay_out(case, 5)
    assert places["weight"].pitch == 0 and places["x"].pitch > 0 and num_bytes < before

    sets = Sets(CpuPlatform(), case, 5)
    sets.scatter_canaries()
    drawn = draw_inputs(case, Reference(task.reference_path), 5, secret_generator("cpu"))
    weight = drawn["weight"][:1].clone()
    sets.write(drawn | {"weight": weight.expand(5, -1)})
    sets.write({"weight": weight.expand(5, -1)}, slice(2, 4))
    assert torch.equal(sets.view("weight"), weight.expand(5, -1)) and torch.equal(sets.view("x"), drawn["x"])
    around = [sets.outside(index) for index in range(5)]
    sets.view("weight")[4, 0] = 2.0
    assert all(torch.equal(sets.outside(index), around[index]) for index in range(5))

    message = sets.bind_message()
    rows = {tensor.name: sets.view(tensor.name) for tensor in (*case.inputs, *case.outputs)}
    names = [argument.name for argument in message.arguments]
    values = [[rows[name][index] if name in rows else 0.0 for name in names] for index in range(5)]

    class Model(torch.nn.Module):
        def __init__(self, *sizes: float) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.empty(int(sizes[0])))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight

    callee = _Modules(Model)
    for pitch, count in ((0, 1), (256, 5)):
        placed = [structs.replace(one, pitch=pitch) if one.name == "weight" else one for one in message.arguments]
        bound = structs.replace(message, arguments=tuple(placed))
        callee.bind(SimpleNamespace(message=bound, values=values))  # type: ignore[arg-type]
        callee.load_constants()
        assert len({id(module) for module in callee._modules}) == count and len(callee._modules) == 5
    callee.call(4)
    assert torch.equal(sets.view("y")[4], sets.view("x")[4] * sets.view("weight")[4])
