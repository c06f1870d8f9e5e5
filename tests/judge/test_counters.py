"""Hardware counters: what the tools' files say, what to do without them, and a program that runs under a tool."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from arena.judge.correctness.stage import CorrectnessCheck
from arena.judge.performance import counters, profiling
from arena.judge.performance.counter_tools import TOOLS, read_ncu, read_rocprofv3
from arena.judge.performance.counters import compare_counters, count
from arena.judge.performance.profiling import profile_largest
from arena.judge.workers.program import Program, WorkerProgram
from arena.judge.workers.worker import ForkServers
from arena.platforms.cpu.platform import CpuPlatform
from arena.processes.protocol import Language
from arena.processes.sandbox.escape import attempt_escape
from arena.results.profile import Counters, CounterTable, KernelTime, Profile
from arena.runs.service.feedback import _profile
from arena.task.definition import Arguments, Task
from arena.task.numerics.reference import Reference
from tests.checks.doctor.fake_evidence import timing
from tests.judge.counter_samples import NCU, NO_PERMISSION, ROCM_PASSES, rocm_counters, rocm_trace

ROCM = TOOLS["rocm"]
FOUND = Counters(
    kernel_us=4.0,
    occupancy_pct=70.0,
    lds_conflict_pct=25.0,
    memory_gbs=5000 * 1024 / 4000,
    l2_gbs=100_000 * 128 / 4000,
    matrix_pct=37.5,
    vector_pct=50.0,
    scalar_pct=7.0,
)
"""of the last two launches, which take 1 and 3 µs"""
LOOKS = """
import os as _os
_status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
print("shown", _os.listdir({hidden!r}), *(_status[name].strip() for name in ("Seccomp", "NoNewPrivs")))
_entry = {entry}
def {entry}(*arguments):
    print("called")
    return _entry(*arguments)
"""


def written(folder: Path, *, timed: bool = True) -> Path:
    """The files of four passes, as rocprofv3 lays them out below the folder that it is given."""
    for index, rows in enumerate(ROCM_PASSES, start=1):
        place = folder / "rocprofv3" / f"pmc_{index}"
        place.mkdir(parents=True)
        (place / "19_counter_collection.csv").write_text(rocm_counters(rows, timed=timed), encoding="utf-8")
        (place / "19_kernel_trace.csv").write_text(rocm_trace(), encoding="utf-8")
    return folder


@pytest.mark.parametrize("timed", [True, False])
def test_rocprofv3_passes_become_one_set_of_counters(tmp_path: Path, timed: bool) -> None:
    """With times beside the counters, and in the kernel trace alone."""
    assert read_rocprofv3(written(tmp_path, timed=timed), "", 2) == FOUND


def test_what_a_pass_does_not_count_is_left_out(tmp_path: Path) -> None:
    files = sorted(written(tmp_path).glob("rocprofv3/pmc_*/*counter_collection.csv"))
    for file in (files[1], files[3]):
        file.unlink()
    partly = read_rocprofv3(tmp_path, "", 2)
    assert partly == replace(FOUND, lds_conflict_pct=None, memory_gbs=None, l2_gbs=None)
    assert read_rocprofv3(tmp_path / "empty", "", 2) is None


def test_ncu_rows_become_one_set_of_counters() -> None:
    assert read_ncu(Path(), NCU, 2) == Counters(
        kernel_us=4.0,
        occupancy_pct=55.0,
        lds_conflict_pct=10.0,
        memory_gbs=1500.0,
        l2_gbs=3000.0,
        matrix_pct=60.0,
        vector_pct=40.0,
        scalar_pct=3.0,
    )
    last = read_ncu(Path(), NCU, 1)
    assert last is not None and (last.kernel_us, last.vector_pct) == (3.0, 50.0)
    assert read_ncu(Path(), NO_PERMISSION, 1) is None


def test_each_tool_is_asked_for_what_is_read(tmp_path: Path) -> None:
    command = ROCM.command(tmp_path, "gfx942")
    assert command[-1] == "--"
    assert asked_for(tmp_path, "gfx942") == {name for rows in ROCM_PASSES for _, name, _ in rows}
    ncu = TOOLS["cuda"].command(tmp_path, "sm_90")
    metrics = ncu[ncu.index("--metrics") + 1].split(",")
    assert all(f'"{name}"' in NCU for name in metrics) and {"--csv", "raw", "base", "off"} <= set(ncu)


def asked_for(folder: Path, arch: str) -> set[str]:
    command = ROCM.command(folder, arch)
    rows = Path(command[command.index("-i") + 1]).read_text(encoding="ascii").splitlines()
    assert all(row.startswith("pmc: ") for row in rows)
    return {name for row in rows for name in row.split()[1:]}


@pytest.mark.parametrize("arch", ["gfx1030", "gfx1100", "gfx1201"])
def test_rdna_is_asked_for_what_it_has(tmp_path: Path, arch: str) -> None:
    """By counter_defs.yaml; one unknown name ends a run without any counter."""
    asked = asked_for(tmp_path, arch)
    assert not asked & {"MfmaUtil", "VALUBusy", "SALUBusy", "TCC_REQ_sum", "SQ_LDS_BANK_CONFLICT"}
    place = tmp_path / "rocprofv3" / "pmc_1"
    place.mkdir(parents=True)
    rows = [(2, name, 10.0) for name in sorted(asked)]
    (place / "19_counter_collection.csv").write_text(rocm_counters(rows), encoding="utf-8")
    found = read_rocprofv3(tmp_path, "", 1)
    assert found == Counters(kernel_us=1.0, occupancy_pct=10.0, lds_conflict_pct=100.0, memory_gbs=2 * 10 * 1024 / 1000)


def test_a_refusal_says_what_to_do_in_one_line() -> None:
    said = TOOLS["cuda"].problem(NO_PERMISSION)
    assert "ERR_NVGPUCTRPERM" in said and "NVreg_RestrictProfilingToAdminUsers=0" in said and "\n" not in said
    assert ROCM.problem("fatal: no\ncounter XYZ\n\n") == "rocprofv3 gave no counters: counter XYZ"
    assert "it printed nothing" in ROCM.problem("")
    assert "\x1b" not in ROCM.problem("\x1b[31mred")


def test_one_view_of_both_sides() -> None:
    table = CounterTable("ncu", Counters(occupancy_pct=12.5), FOUND, "a word", 0.25, 0.5)
    lines = list(_profile(Profile("M=1", (KernelTime("k", 1, 2.0),), counters=table)))
    row = {line.split("  ")[2].strip(): line.split()[-2:] for line in lines if line.startswith("    ")}
    assert row["occupancy, %"] == ["12.5", "70"]
    assert row["matrix units busy, %"] == ["–", "37.5"]
    assert row["roofline reached, %"] == ["25", "50"]
    assert any("counters by ncu" in line and line.split()[-2:] == ["baseline", "candidate"] for line in lines)
    assert lines[-1] == "    a word"


@pytest.fixture
def check(task: Task) -> CorrectnessCheck:
    return CorrectnessCheck(CpuPlatform(), Reference(task.reference_path), 1, 20.0)


@pytest.fixture
def program(task: Task, tmp_path: Path) -> Iterator[WorkerProgram]:
    """The task's kernel, which prints what it sees when it is loaded, and each call; the task folder is hidden."""
    assert task.baseline_kernel is not None
    kernel = tmp_path / "kernel.py"
    looks = LOOKS.format(hidden=str(task.path), entry=task.entry)
    kernel.write_text(task.baseline_kernel.read_text(encoding="utf-8") + looks, encoding="utf-8")
    found = WorkerProgram(cast(ForkServers, None), None, (task.path,), 20.0)
    yield found.adopt(Program(task, Language.TRITON, {"": kernel}))
    found.discard()


def tool(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `rocprofv3` that runs the program and leaves the files above; returns where it notes what the program said."""
    samples, said, script = written(folder / "samples"), folder / "said", folder / "bin" / "rocprofv3"
    script.parent.mkdir()
    script.write_text(
        "#!/bin/sh\n"
        'while [ "$1" != -- ]; do [ "$1" = -d ] && output=$2; [ "$1" = -i ] && cat "$2"; shift; done; shift\n'
        f'"$@" > {said} 2>&1 || {{ cat {said}; exit 1; }}\n'
        f'cp -r {samples}/rocprofv3 "$output"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    return said


@pytest.mark.slow
def test_a_program_runs_twice_under_a_tool_and_in_a_sandbox(
    check: CorrectnessCheck,
    case: Arguments,
    program: WorkerProgram,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = tool(tmp_path, monkeypatch)
    kernels = (KernelTime("reduce", 2, 1.0), KernelTime("Memset (Device)", 5, 1.0))
    assert count(check, ROCM, (program, kernels), case) == (FOUND, "")
    lines = said.read_text(encoding="utf-8").splitlines()
    assert lines.count("called") == 2
    if "mount" in attempt_escape().level:
        assert lines[0] == "shown [] 2 1"


@pytest.mark.slow
def test_a_program_that_fails_there_is_a_line(
    check: CorrectnessCheck, case: Arguments, task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(tmp_path, monkeypatch)
    kernel = tmp_path / "kernel.py"
    kernel.write_text("raise ValueError('not under a profiler')\n", encoding="utf-8")
    program = WorkerProgram(cast(ForkServers, None), None, (), 20.0)
    program.adopt(Program(task, Language.TRITON, {"": kernel}))
    found, problem = count(check, ROCM, (program, (KernelTime("k", 1, 1.0),)), case)
    program.discard()
    assert found is None and "not under a profiler" in problem and "\n" not in problem


def test_without_the_tool_the_table_says_how_to_get_it(
    check: CorrectnessCheck, case: Arguments, program: WorkerProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The position on the roofline is known all the same, from the measured times."""
    monkeypatch.setattr(counters, "find_program", lambda name: None)
    side = (program, (KernelTime("k", 1, 1.0),))
    timed = replace(timing(0.5, speedup=2.0), roofline_ms=0.1)
    table = compare_counters(check, ROCM, side, side, case, timed)
    assert table == CounterTable("rocprofv3", detail=table.detail, baseline_roofline=0.2, candidate_roofline=0.2)
    assert table.detail.startswith("rocprofv3 is not installed; install ROCm's rocprofiler-sdk")


@pytest.mark.slow
def test_a_profile_counts_both_sides(
    check: CorrectnessCheck,
    case: Arguments,
    program: WorkerProgram,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The CPU stands in for the device, and has no profiler of its own that would see a kernel."""
    said, timed = tool(tmp_path, monkeypatch), replace(timing(0.5, speedup=2.0), roofline_ms=0.1)
    monkeypatch.setattr(check.platform, "graphs", True)
    monkeypatch.setattr(profiling, "TOOLS", {"cpu": ROCM})
    monkeypatch.setattr(profiling, "_profile", lambda *_: (KernelTime("k", 2, 1.0),))
    found = profile_largest(check, program, [case], (), program, {case.case.id: timed})
    assert found.counters == CounterTable("rocprofv3", FOUND, FOUND, "", 0.2, 0.2)
    assert said.exists() and found.case == case.case.label
    without = profile_largest(check, program, [case], (), program, {})
    assert without.counters == CounterTable("rocprofv3", FOUND, FOUND)


def test_a_call_without_kernels_is_not_counted(
    check: CorrectnessCheck,
    case: Arguments,
    program: WorkerProgram,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = tool(tmp_path, monkeypatch)
    copies = (KernelTime("Memcpy DtoD", 1, 1.0),)
    assert count(check, ROCM, (program, copies), case)[1].startswith("the call launched no kernel")
    assert not said.exists()
