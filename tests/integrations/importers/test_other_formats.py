"""robust-kbench, FlashInfer-Bench and AgentKernelArena: each on a small checkout that is written here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from arena.errors import UsageError
from arena.integrations.importers import flashinfer_bench, robust_kbench
from arena.integrations.importers.problem import Reason, Skipped
from arena.integrations.importers.run import Importer
from arena.integrations.importers.table import ProblemRow
from arena.semantics.casts import call_uncast, in_order
from arena.task.corpus.task_folder import load_task
from arena.task.definition import TaskType

ROBUST = '''\
import torch
import torch.nn as nn


def forward_fn(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Model(nn.Module):
    """RMS norm."""

    def __init__(self, num_features: int = 64, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(num_features))
        self.eps = eps

    def forward(self, x, fn=forward_fn):
        return fn(x, self.weight, self.eps)


def get_inputs(batch: int = 2, num_features: int = 64):
    return [torch.randn(batch, num_features)]
'''
CONFIG = {"single_input_configs": [{"batch": 8192}], "single_shared_configs": [{"num_features": 2048}]}


def rows_of(importer: Importer, files: dict[Path, str]) -> dict[str, ProblemRow]:
    with importer:
        return {row.task.rpartition("/")[2]: row for row in importer.run(files, lambda row: None)}


@pytest.mark.slow
def test_robust_kbench(tmp_path: Path) -> None:
    folder = tmp_path / "tasks" / "rms"
    folder.mkdir(parents=True)
    (folder / "func_forward.py").write_text(ROBUST, encoding="utf-8")
    (folder / "func_backward.py").write_text(ROBUST, encoding="utf-8")
    (folder / "config_forward.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    importer = Importer(tmp_path / "corpus", TaskType.TORCH2HIP, robust_kbench)
    rows = rows_of(importer, robust_kbench.find(tmp_path))
    assert rows["rms"].outcome == "imported", rows["rms"].detail
    assert rows["rms_backward"].reason == Reason.FORMAT
    task = load_task(tmp_path / "corpus" / rows["rms"].task)
    assert {axis.name for axis in task.axes} == {"batch", "num_features"}
    assert {"batch": 8192, "num_features": 2048} in [case.values for case in task.seen]
    assert [spec.name for spec in task.inputs] == ["x", "weight"]
    with pytest.raises(UsageError, match="expected a checkout of robust-kbench"):
        robust_kbench.find(tmp_path / "corpus")


def definition(**changed: Any) -> dict[str, Any]:
    return {
        "name": "rmsnorm_h2048",
        "description": "RMS norm of each row.",
        "axes": {"tokens": {"type": "var", "description": "tokens"}, "hidden": {"type": "const", "value": 2048}},
        "inputs": {
            "x": {"shape": ["tokens", "hidden"], "dtype": "bfloat16"},
            "weight": {"shape": ["hidden"], "dtype": "bfloat16"},
        },
        "outputs": {"y": {"shape": ["tokens", "hidden"], "dtype": "bfloat16"}},
        "reference": (
            "import torch\n\n@torch.no_grad()\ndef run(x, weight):\n    assert x.shape[1] == 2048\n"
            "    wide = x.to(torch.float32)\n    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)\n"
            "    return {'y': (wide * weight.to(torch.float32)).to(x.dtype)}\n"
        ),
        **changed,
    }


def write_definition(root: Path, data: dict[str, Any], workloads: list[dict[str, Any]]) -> Path:
    path = root / "definitions" / "norm" / f"{data['name']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")
    lines = [json.dumps({"definition": data["name"], "workload": {"uuid": "u", **one}}) for one in workloads]
    place = root / "workloads" / "norm"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{data['name']}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return path


RANDOM = {"x": {"type": "random"}, "weight": {"type": "random"}}
WORKLOADS = [{"axes": {"tokens": tokens}, "inputs": RANDOM} for tokens in (1, 16384, 20000, 30000)]


@pytest.mark.slow
def test_flashinfer_bench(tmp_path: Path) -> None:
    """Constants are axes, so that small cases exist; workloads are timed cases; the reference is exact in float64."""
    write_definition(tmp_path, definition(constraints=["tokens >= 1", "hidden > 1"]), WORKLOADS)
    importer = Importer(tmp_path / "corpus", TaskType.TORCH2TRITON, flashinfer_bench)
    rows = rows_of(importer, flashinfer_bench.find(tmp_path))
    row = rows["rmsnorm_h2048"]
    assert row.outcome == "imported", row.detail
    task = load_task(tmp_path / "corpus" / row.task)
    assert {axis.name for axis in task.axes} == {"tokens", "hidden"} and task.suite == "flashinfer_norm"
    assert {spec.dtype for spec in task.tensors} == {"bfloat16"}
    timed = [case.values["tokens"] for case in task.cases if case.timed and case.values["hidden"] == 2048]
    assert {30000, 20000, 16384} <= set(timed)
    assert "hidden > 1" in [constraint.text for constraint in task.constraints]


SAFETENSORS = [{"axes": {"tokens": 4}, "inputs": {**RANDOM, "weight": {"type": "safetensors", "path": "x"}}}]
INTEGERS = {
    "x": {"shape": ["tokens", "hidden"], "dtype": "int32"},
    "weight": {"shape": ["hidden"], "dtype": "bfloat16"},
}
SCALAR = {"x": {"shape": ["tokens", "hidden"], "dtype": "bfloat16"}, "weight": {"shape": None, "dtype": "float32"}}


@pytest.mark.parametrize(
    ("data", "workloads", "reason", "said"),
    [
        (definition(), SAFETENSORS, Reason.INPUT, "lie in a file"),
        (definition(inputs=INTEGERS), WORKLOADS, Reason.INPUT, "`x` is int32"),
        (definition(inputs=SCALAR), WORKLOADS, Reason.INPUT, "no workload gives the scalar"),
        (definition(constraints=["weight[-1] == tokens"]), WORKLOADS, Reason.FORMAT, "the constraint"),
        (definition(constraints=["weight == tokens"]), WORKLOADS, Reason.INPUT, "depends on values"),
        (definition(reference="import flashinfer\n"), WORKLOADS, Reason.PACKAGE, "flashinfer"),
        (definition(reference="def run(:\n"), WORKLOADS, Reason.FORMAT, "SyntaxError"),
    ],
)
def test_what_flashinfer_bench_cannot_give(
    tmp_path: Path, data: dict[str, Any], workloads: list[dict[str, Any]], reason: Reason, said: str
) -> None:
    with pytest.raises(Skipped, match=said) as caught:
        flashinfer_bench.read(write_definition(tmp_path, data, workloads))
    assert caught.value.reason is reason


def test_casts_are_left_out_for_wider_inputs_alone() -> None:
    def third(x: torch.Tensor) -> torch.Tensor:
        return (x.to(torch.float32) / 3).to(torch.bfloat16)

    x = torch.ones(2, dtype=torch.bfloat16)
    native = call_uncast(third, {"x": x}, {"x": "bfloat16"})
    wide = call_uncast(third, {"x": x.double()}, {"x": "bfloat16"})
    assert native.dtype is torch.bfloat16 and wide.dtype is torch.float64
    assert float(wide[0]) == 1 / 3 != float(native[0])
    assert [value.shape for value in in_order({"b": wide, "a": wide.sum()}, ["a", "b"])] == [(1,), (2,)]
