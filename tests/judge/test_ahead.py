"""Kernels compiled ahead of the device: what is left for the judge, and what a candidate can do with the folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.errors import InfrastructureError
from arena.judge.compile.builder_client import BuilderClient
from arena.judge.process.client import JudgeClient
from arena.judge.workers.program import triton_cache
from arena.results.environment import DeviceFacts, Environment
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS
from arena.task.options import Options

RMS_NORM = TASKS / "triton2triton/normalization/rms_norm"
GPU = Environment(DeviceFacts("cuda", "nvidia", "sm_90", "NVIDIA H200", 32, 140 << 30, 60 << 20), "session")
OPTIONS = Options(max_work=2e4, call_timeout_s=30.0)


@pytest.fixture(scope="module")
def builder() -> Iterator[BuilderClient]:
    with BuilderClient() as kept:
        yield kept


def candidate(folder: Path, before: str = "", text: str = "") -> Path:
    path = folder / "candidate.py"
    path.write_text(before + (text or (RMS_NORM / "kernel.py").read_text(encoding="utf-8")), encoding="utf-8")
    return path


def binaries(folder: Path) -> dict[Path, float]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.cubin")}


@pytest.fixture
def into(tmp_path: Path) -> Path:
    folder = tmp_path / "compiled"
    folder.mkdir()
    return folder


def test_kernels_of_both_splits_are_left_apart(builder: BuilderClient, tmp_path: Path, into: Path) -> None:
    assert builder.compile(RMS_NORM, candidate(tmp_path), OPTIONS, GPU, None, into) is None
    assert sorted(path.name for path in into.iterdir()) == ["heldout", "seen"]
    first = {split: binaries(into / split) for split in ("seen", "heldout")}
    assert all(first.values())
    assert binaries(triton_cache()), "the baseline's are there too"
    assert builder.compile(RMS_NORM, candidate(tmp_path), OPTIONS, GPU, None, into) is None
    assert {split: binaries(into / split) for split in first} == first, "compiled again, not found"


@pytest.mark.slow
def test_without_heldout_cases_nothing_of_them_is_compiled(builder: BuilderClient, tmp_path: Path, into: Path) -> None:
    options = Options(heldout=False, max_work=2e4, call_timeout_s=30.0)
    assert builder.compile(RMS_NORM, candidate(tmp_path), options, GPU, None, into) is None
    assert binaries(into / "seen") and not binaries(into / "heldout")


REACHES = """
import os, pathlib
def reached():
    mine = pathlib.Path(os.environ["TRITON_CACHE_DIR"])
    if mine.name == "heldout":
        (mine / "mark").write_text("held-out cases were here")
        return
    for path in ({other!r}, {baseline!r}):
        try:
            found = sorted(os.listdir(path))
            if found:
                raise SyntaxError(f"{{path}} holds {{found[:3]}}")
            open(os.path.join(path, "poison"), "w").close()
            raise SyntaxError(f"{{path}} was written")
        except OSError:
            pass
reached()
"""


@pytest.mark.slow
def test_the_seen_split_sees_neither_the_other_folder_nor_the_baselines(
    builder: BuilderClient, tmp_path: Path, into: Path
) -> None:
    """A candidate that reaches one is refused with what it found; one that cannot compiles as any other."""
    triton_cache().mkdir(parents=True, exist_ok=True)
    attack = REACHES.format(other=str(into / "heldout"), baseline=str(triton_cache()))
    for _ in range(2):  # the second time there is something to find
        found = builder.compile(RMS_NORM, candidate(tmp_path, attack), OPTIONS, GPU, None, into)
        assert found is None, found.verdicts[0].detail
    assert (into / "heldout" / "mark").is_file()
    for folder in (into / "heldout", into / "seen", triton_cache()):
        assert not (folder / "poison").exists()


@pytest.mark.slow
def test_a_kernel_that_fails_on_heldout_cases_alone_is_not_refused(
    builder: BuilderClient, tmp_path: Path, into: Path
) -> None:
    fails = 'import os\nif os.environ["TRITON_CACHE_DIR"].endswith("heldout"):\n    raise SyntaxError("only there")\n'
    assert builder.compile(RMS_NORM, candidate(tmp_path, fails), OPTIONS, GPU, None, into) is None
    fails = fails.replace("heldout", "seen")
    found = builder.compile(RMS_NORM, candidate(tmp_path, fails), OPTIONS, GPU, None, into)
    assert found is not None and found.status is Status.COMPILE_ERROR and "only there" in found.verdicts[0].detail


def test_a_candidate_gets_one_processor_whatever_it_asks_for(
    builder: BuilderClient, tmp_path: Path, into: Path
) -> None:
    """Threads that load all processors of a machine whose control group has a quota would hold up the judge."""
    asks = (
        "import os\nos.sched_setaffinity(0, range(os.cpu_count()))\n"
        "if len(os.sched_getaffinity(0)) != 1:\n    raise SyntaxError(os.sched_getaffinity(0))\n"
    )
    assert builder.compile(RMS_NORM, candidate(tmp_path, asks), OPTIONS, GPU, None, into) is None


@pytest.mark.slow
def test_the_cases_of_another_file_are_compiled(builder: BuilderClient, tmp_path: Path, into: Path) -> None:
    """A private draw of held-out cases comes as a file in place of the task's own: here one that is malformed."""
    alone = tmp_path / "heldout.yaml"
    alone.write_text("- {x: 1}\n", encoding="utf-8")
    with pytest.raises(InfrastructureError, match=r"heldout\.yaml"):
        builder.compile(RMS_NORM, candidate(tmp_path), OPTIONS, GPU, alone, into)
    alone.write_text((RMS_NORM / "heldout.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    assert builder.compile(RMS_NORM, candidate(tmp_path), OPTIONS, GPU, alone, into) is None
    assert binaries(into / "heldout")


WAKING = """
import ctypes, os
for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
    os.environ[name] = "0"
woken = {}
for library, function in (("libcuda.so.1", "cuInit"), ("libamdhip64.so", "hipInit")):
    try:
        woken[library] = getattr(ctypes.CDLL(library), function)(0)
    except OSError:
        pass
with open(os.path.join(os.environ["TRITON_CACHE_DIR"], "woken"), "w") as file:
    file.write(repr(sorted(woken.values())))

"""


@pytest.mark.gpu
def test_a_candidate_that_is_compiled_does_not_wake_the_device(
    builder: BuilderClient, gpu_judge: JudgeClient, tmp_path: Path, into: Path
) -> None:
    """It runs beside what is measured, and may say again which devices are visible."""
    builder.compile(RMS_NORM, candidate(tmp_path, WAKING), OPTIONS, gpu_judge.environment, None, into)
    for split in ("seen", "heldout"):
        codes = json.loads((into / split / "woken").read_text(encoding="utf-8"))
        assert codes and all(codes)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["normalization/rms_norm", "linear_attention/kda_gate", "fundamentals/gemm"])
def test_a_device_finds_every_kernel(
    builder: BuilderClient, gpu_judge: JudgeClient, tmp_path: Path, into: Path, name: str
) -> None:
    """Nothing that the judge launches is compiled again: the stand-in asks Triton for the same as the device."""
    task, options = TASKS / "triton2triton" / name, Options(seeds=1, timing_budget_s=0.02)
    file = task / "kernel.py"
    assert builder.compile(task, file, options, gpu_judge.environment, None, into) is None
    compiled = binaries(into)
    found = gpu_judge.evaluate(task, file, options, compiled=into)
    assert found.status is Status.PASSED, found.verdicts[-1].detail
    assert compiled and binaries(into) == compiled


@pytest.mark.gpu
def test_a_poisoned_cache_harms_its_own_candidate_alone(
    builder: BuilderClient, gpu_judge: JudgeClient, tmp_path: Path, into: Path
) -> None:
    """The folder is the candidate's: what it spoils there fails, and neither the baseline nor others launch it."""
    options = Options(heldout=False, seeds=1, timing_budget_s=0.02)
    file = candidate(tmp_path)
    assert builder.compile(RMS_NORM, file, options, gpu_judge.environment, None, into) is None
    for binary in binaries(into):
        binary.write_bytes(b"poison")
    spoiled = gpu_judge.evaluate(RMS_NORM, file, options, compiled=into)
    assert spoiled.status in (Status.LAUNCH_ERROR, Status.CRASH) and spoiled.cases[0].baseline is Status.PASSED
    clean = tmp_path / "clean"
    clean.mkdir()
    assert builder.compile(RMS_NORM, file, options, gpu_judge.environment, None, clean) is None
    assert gpu_judge.evaluate(RMS_NORM, file, options, compiled=clean).status is Status.PASSED
