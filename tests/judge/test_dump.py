"""The dump of a call: the judge's own tensors, and a script that repeats the call without the package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from msgspec import structs
from typer.testing import CliRunner

import arena
from arena.cli.app import app
from arena.errors import UsageError
from arena.judge.correctness.dump import _Replaced
from arena.judge.process.client import JudgeClient
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS
from arena.task.options import RUN, SERVE, Options, options_of

RMS_NORM, SOFTMAX = TASKS / "triton2triton/normalization/rms_norm", TASKS / "hip2hip/modules/softmax"
QUICK = Options(heldout=False, seeds=1, max_work=2e4, effort="correctness")  # type: ignore[arg-type]

SAID = r"(?:softmax returned 0\n)?y\[\d+, \d+\]: got \S+, expected \S+ ± \S+ \((\S+) × tolerance\)\n"


def ran(folder: Path, *arguments: str, code: int = 0) -> str:
    """Run the script where nothing of the project can be imported; return what it prints of outputs."""
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TRITON_INTERPRET")}
    command = [sys.executable, "-P", str(folder / "reproduce.py"), *arguments]
    done = subprocess.run(command, cwd=folder.parent, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert "import arena" not in (folder / "reproduce.py").read_text(encoding="utf-8")
    return done.stdout


def doubled(folder: Path) -> Path:
    """A kernel that stores twice what it should, and tries to write to the folder of the dump."""
    text = (RMS_NORM / "kernel.py").read_text(encoding="utf-8")
    store = next(line for line in text.splitlines() if "tl.store(" in line)
    name = store.split(",")[1].strip()
    look = f"\ntry:\n    open({str(folder / 'dump' / 'got.npz')!r}, 'wb').write(b'forged')\nexcept OSError:\n    pass\n"
    kernel = folder / "kernel.py"
    kernel.write_text(text.replace(store, store.replace(name, f"2 * ({name})")) + look, encoding="utf-8")
    return kernel


def test_a_wrong_result_can_be_repeated_without_the_package(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    kernel, folder = doubled(tmp_path), tmp_path / "dump"
    folder.mkdir()
    found = cpu_judge.evaluate(RMS_NORM, kernel, structs.replace(QUICK, dump=str(folder)))
    assert (found.status, found.dumped) == (Status.WRONG_RESULT, "seen-01")
    inputs, expected, got = (dict(np.load(folder / f"{name}.npz")) for name in ("inputs", "expected", "got"))
    assert set(inputs) == {"x", "weight"} and set(expected) == set(got) == {"y"}
    assert np.allclose(got["y"], 2 * expected["y"], rtol=1e-4)
    said = re.fullmatch(SAID, ran(folder, code=1))
    assert said and float(said[1]) > 1
    judged = re.search(r"got (\S+), expected (\S+) ± (\S+) \((\S+) × tolerance\)", found.failure.detail)  # type: ignore[union-attr]
    assert judged and judged[3] in said[0] and judged[4] in said[0], "the judge's own figures"
    right = re.fullmatch(SAID, ran(folder, str(RMS_NORM / "kernel.py")))
    assert right and float(right[1]) < 1, "the file that is named is called"
    code = (folder / "reproduce.py").read_text(encoding="utf-8").split('"""', 2)[2]
    assert len([line for line in code.splitlines() if line]) <= 20


def test_outputs_that_are_not_written_or_nan_are_wrong(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("def rms_norm(x, weight, eps, y):\n    pass\n", encoding="utf-8")
    folder = tmp_path / "dump"
    assert cpu_judge.evaluate(RMS_NORM, kernel, structs.replace(QUICK, dump=str(folder))).dumped == "seen-01"
    assert "got nan" in ran(folder, code=1) and "(inf × tolerance)" in ran(folder, code=1)


def test_a_named_case_is_written_although_it_passes_and_bfloat16_as_pt(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    options = structs.replace(QUICK, like="M=2 N=100 dtype=bfloat16", dump=str(tmp_path / "dump"))
    found = cpu_judge.evaluate(RMS_NORM, RMS_NORM / "kernel.py", options)
    assert (found.status, found.dumped) == (Status.PASSED, "like-seen-01")
    assert torch.load(tmp_path / "dump" / "inputs.pt")["x"].shape == (2, 100)
    assert not list((tmp_path / "dump").glob("*.npz")) and re.fullmatch(SAID, ran(tmp_path / "dump"))
    assert (
        cpu_judge.evaluate(RMS_NORM, RMS_NORM / "kernel.py", structs.replace(QUICK, dump=str(tmp_path / "n"))).dumped
        == ""
    )
    assert not (tmp_path / "n").exists()


def test_a_hip_kernel_that_crashes_says_how_to_compile_it(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    text = (SOFTMAX / "kernel.hip").read_text(encoding="utf-8")
    kernel = tmp_path / "kernel.hip"
    kernel.write_text(text.replace("return hipGetLastError();", "*(volatile int*)0 = 1; return hipGetLastError();"))
    folder = tmp_path / "dump"
    found = cpu_judge.evaluate(SOFTMAX, kernel, structs.replace(QUICK, dump=str(folder)))
    assert (found.status, found.dumped) == (Status.CRASH, "seen-01")
    assert (folder / "inputs.npz").is_file() and not (folder / "got.npz").exists()
    command = next(line for line in (folder / "reproduce.py").read_text().splitlines() if "kernel.so" in line).strip()
    cpu_judge.evaluate(SOFTMAX, SOFTMAX / "kernel.hip", structs.replace(QUICK, case=("seen-01",), dump=str(folder)))
    subprocess.run(command, shell=True, cwd=folder, check=True)
    assert re.search(SAID, ran(folder))


def test_a_candidate_that_is_not_called_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, folder = tmp_path / "kernel.py", tmp_path / "new" / "dump"
    kernel.write_text("def rms_norm(\n", encoding="utf-8")
    typed = ["evaluate", "rms_norm", str(kernel), "--platform", "cpu", "--effort", "correctness", "--no-heldout"]
    done = CliRunner().invoke(app, [*typed, "--max-work", "2e4", "--dump", str(folder)])
    assert done.exit_code == 1 and not folder.exists()
    assert "dump: nothing was written, since the candidate was not called: compile_error" in done.output


def test_a_folder_that_takes_no_file_is_no_fault_of_the_candidate(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    found = cpu_judge.evaluate(RMS_NORM, doubled(tmp_path), structs.replace(QUICK, dump=str(tmp_path / "file")))
    assert (found.status, found.dumped) == (Status.WRONG_RESULT, "")
    with pytest.raises(UsageError, match=r"dump: .* is no folder to write to"):
        arena.evaluate("rms_norm", RMS_NORM / "kernel.py", dump=str(tmp_path / "file"))


def test_a_link_in_the_folder_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("kept")
    (tmp_path / "got.npz").symlink_to(tmp_path / "other")
    with _Replaced(tmp_path / "got.npz") as path:
        path.write_text("new")
    assert (tmp_path / "other").read_text() == "kept" and (tmp_path / "got.npz").read_text() == "new"


@pytest.mark.parametrize("command", [RUN, SERVE])
def test_no_run_and_no_server_dumps(command: str) -> None:
    with pytest.raises(UsageError, match="unknown option `dump`"):
        options_of({"dump": "here"}, command)
