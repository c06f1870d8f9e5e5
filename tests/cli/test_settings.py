"""Settings of machines that users really have: each ends in a verdict, or in exit code 3 and a line with what to do.

None shows a traceback on the terminal. `tests/cli/test_endings.py` holds encodings and streams of commands that start
no judge, and `tests/processes/test_python_child.py` has `arena evaluate` beside files with names of modules.
"""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from arena.cli.crash import without_traceback
from arena.errors import ArenaError, FileError, InfrastructureError, MachineError, UsageError
from arena.judge.process import control
from arena.judge.process.messages import HarnessFailed
from arena.platforms.cpu.hip.toolchain import HipCpuToolchain
from arena.platforms.toolchains.base import BuildFailed
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_build import answered
from arena.platforms.toolchains.hip_worker import build_worker
from arena.processes import process, python_child, scratch
from arena.processes.process import Finished
from arena.processes.sandbox import bubblewrap
from arena.task.corpus.scaffolding import scaffold
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.options import Options
from arena.task.rules import LONGEST_NAME
from tests.processes.test_python_child import dependencies, plant
from tests.task.corpus.folders import write_task

ARENA = str(Path(sys.executable).with_name("arena"))
ROOT = Path(__file__).parents[1]
HIP, TRITON = "hip2hip/modules/softmax", "triton2triton/normalization/rms_norm"
FILES = {HIP: "kernel.hip", TRITON: "kernel.py"}
QUICK = ["--platform", "cpu", "--effort", "correctness", "--seeds", "1", "--max-work", "1e4", "--no-heldout"]
ODD = "two words é ü, 'quoted'"
MOUNT = "mount -t tmpfs -o {options} tmpfs {place} && "
JUDGED = r"(?s).*seen only, seen 2/2.*"
MISALIGNED = """
#include "task.h"
template <typename E> __global__ void copied(const E* x, E* y, int64_t count) {
    const int64_t i = threadIdx.x;
    if (4 * i + 8 < count) reinterpret_cast<float4*>(y + 1)[i] = reinterpret_cast<const float4*>(x + 1)[i];
}
extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    copied<<<1, 64, 0, stream>>>(x, y, M * N);
    return hipGetLastError();
}
"""
VERDICTS = {
    "no input": (TRITON, {"PYTHONIOENCODING": "ascii"}, "exec <&-; ulimit -v 8000000; "),
    "no output": (TRITON, {}, "exec >&-; "),
    "no errors": (TRITON, {"PYTHONIOENCODING": "latin-1:strict"}, "exec 2>&-; "),
    "no streams": (TRITON, {}, "exec <&- >&- 2>&-; "),
    "locale C": (HIP, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}, "ulimit -n 64; "),
}
"""task, variables, and what a shell does before it starts the command; independent settings share an evaluation"""
COLD = "umask 077; ulimit -v 8000000 -f 1000000; "
"""what a shell does before commands that find an empty cache: compilers run within these limits, too"""
MOUNTS = {
    "read-only temporary": (TRITON, "TMPDIR", "ro", 0, JUDGED),
    "small noexec temporary, Triton": (TRITON, "TMPDIR", "noexec,size=64k", 0, JUDGED),
    "read-only home": (
        TRITON,
        "HOME",
        "ro",
        3,
        r"arena: the cache cannot be written: .*: Read-only .*; set XDG_CACHE_HOME .*",
    ),
    "read-only home, HIP": (
        HIP,
        "HOME",
        "ro",
        3,
        r"arena: the cache cannot be written: .*: Read-only .*; set XDG_CACHE_HOME .*",
    ),
    "noexec cache": (
        HIP,
        "XDG_CACHE_HOME",
        "noexec",
        3,
        r"arena: .*hip_worker cannot be executed: .* noexec; set XDG_CACHE.*",
    ),
    "noexec temporary": (
        HIP,
        "TMPDIR",
        "noexec",
        3,
        r"arena: compiled kernels cannot be loaded from .* noexec; set TMPDIR .*",
    ),
    "small temporary": (
        HIP,
        "TMPDIR",
        "size=64k",
        3,
        r"arena: .* could not be written: No space left .*; make room, or set TMPDIR.*",
    ),
    "small cache": (
        HIP,
        "XDG_CACHE_HOME",
        "size=64k",
        3,
        r"arena: the cache .* is full; make room, or set XDG_CACHE_HOME .*",
    ),
}
"""task, the variable that names a file system in memory, its options, the exit code, and the last line"""


def ran(line: str, folder: Path, arguments: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a shell that runs `line` first, in a folder; no traceback reaches the terminal."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    command = ["/bin/bash", "-c", f'{line}exec "$@"', "bash", ARENA, *arguments]
    state = {"XDG_STATE_HOME": str(folder / "state"), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        command, cwd=folder, env={**kept, **state, **variables}, capture_output=True, timeout=280, check=False
    )
    said, told = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    assert "Traceback" not in said + told, said + told
    return subprocess.CompletedProcess(command, done.returncode, said, told)


def kernel_of(task: str, folder: Path) -> str:
    shutil.copy(TASKS / task / FILES[task], folder)
    return FILES[task]


@cache
def mounts() -> bool:
    """Return whether this user may mount a file system in memory, in namespaces of its own."""
    tried = ["unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return shutil.which("unshare") is not None and process.run(tried, timeout_s=20.0).ok


@pytest.mark.slow
@pytest.mark.parametrize("setting", VERDICTS)
def test_a_candidate_is_judged(setting: str, tmp_path: Path) -> None:
    task, variables, before = VERDICTS[setting]
    done = ran(before, tmp_path, ["evaluate", task, kernel_of(task, tmp_path), *QUICK], **variables)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    if setting in ("no output", "no streams"):
        assert done.stdout == ""
    else:
        assert re.match(JUDGED, done.stdout), done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("setting", MOUNTS)
def test_places_that_take_no_files_or_run_none(setting: str, tmp_path: Path) -> None:
    if not mounts():
        pytest.skip("this user may not mount a file system, not even in namespaces of its own")
    task, variable, options, code, said = MOUNTS[setting]
    place = tmp_path / "place"
    place.mkdir()
    line = f"exec unshare -Urm /bin/bash -c '{MOUNT.format(options=options, place=place)} exec \"$@\"' bash "
    without = {"XDG_CACHE_HOME": ""} if variable == "HOME" else {}
    typed = ["evaluate", task, kernel_of(task, tmp_path), *QUICK]
    command = ["/bin/bash", "-c", f'{line} "$@"', "bash", ARENA, *typed]
    variables = {**os.environ, **without, "XDG_STATE_HOME": str(tmp_path / "state"), variable: str(place)}
    done = subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == code and "Traceback" not in done.stdout + done.stderr, done.stderr
    last = done.stdout if code == 0 else done.stderr.splitlines()[-1]
    assert re.fullmatch(said, last.strip()), done.stderr


@pytest.mark.slow
def test_a_small_folder_for_shared_memory_is_not_needed(tmp_path: Path) -> None:
    if not mounts():
        pytest.skip("this user may not mount a file system, not even in namespaces of its own")
    line = f"unshare -Urm /bin/bash -c '{MOUNT.format(options='size=16k', place='/dev/shm')} exec \"$@\"' bash "
    command = ["/bin/bash", "-c", f'{line} "$@"', "bash", ARENA, "evaluate", HIP, kernel_of(HIP, tmp_path), *QUICK]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0 and re.match(JUDGED, done.stdout), done.stderr


@pytest.mark.slow
def test_a_hostile_folder(tmp_path: Path) -> None:
    """Its path has spaces and other characters, its caches are empty, and a file for each module lies in it."""
    folder, marker = tmp_path / ODD, tmp_path / "imported"
    places = {"HOME": folder / "my home", "XDG_CACHE_HOME": folder / "my cache", "TMPDIR": folder / "my files"}
    for place in places.values():
        place.mkdir(parents=True)
    plant(folder, marker, {*sys.stdlib_module_names, *dependencies(), "sitecustomize", "usercustomize"})
    variables = {name: str(place) for name, place in places.items()}
    for task, name in ((TRITON, "my kernel ö.py"), (HIP, "my kernel ö.hip")):
        shutil.copy(TASKS / task / FILES[task], folder / name)
        dump = ["--case", "seen-01", "--dump", "my dump"]
        done = ran(COLD, folder, ["evaluate", task, name, *QUICK, *dump], **variables)
        assert done.returncode == 0, done.stderr
    command = next(line for line in (folder / "my dump/reproduce.py").read_text().splitlines() if "kernel.so" in line)
    subprocess.run(command.strip(), shell=True, cwd=folder / "my dump", check=True)
    subprocess.run([sys.executable, "-P", "my dump/reproduce.py"], cwd=folder, check=True)
    typed = ["run", "quickstart", "--agents", "honest", "--tasks", "rms_norm", "--runs-dir", "my runs"]
    done = ran(COLD, folder, [*typed, "--no-report"], **variables)
    assert done.returncode == 0, done.stderr
    done = ran(COLD, folder, ["report", "my runs/quickstart", "--out", "my report"], **variables)
    assert done.returncode == 0 and (folder / "my report" / "index.html").is_file(), done.stderr
    assert not marker.exists(), marker.read_text()


@pytest.mark.slow
def test_checking_a_task_imports_no_file_of_its_folder(tmp_path: Path) -> None:
    beside, marker = tmp_path / "beside", tmp_path / "imported"
    beside.mkdir()
    plant(beside, marker, {*sys.stdlib_module_names, *dependencies(), "sitecustomize", "usercustomize"})
    typed = ["tasks", "check", TRITON, "--platform", "cpu", "--out", str(tmp_path / "checks")]
    done = ran("", beside, typed)
    assert not marker.exists(), marker.read_text()
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_misaligned_vector_access_is_named(tmp_path: Path) -> None:
    (tmp_path / "kernel.hip").write_text(MISALIGNED, encoding="utf-8")
    done = ran("", tmp_path, ["evaluate", HIP, "kernel.hip", *QUICK])
    assert (
        done.returncode == 1 and "SIGILL; it printed: HIP on CPU: a vector access, such as one of float4" in done.stdout
    )


@pytest.mark.parametrize("task_type", ["triton2triton", "hip2hip"])
def test_a_long_name_fails_before_any_work(tmp_path: Path, task_type: str) -> None:
    name = "n" * 238
    with pytest.raises(UsageError, match=f"has 238 characters; a name may have {LONGEST_NAME}"):
        scaffold(task_type, "suite", name, tmp_path)
    folder = write_task(tmp_path, f"triton2triton/suite/{name}")
    with pytest.raises(FileError, match=rf"task\.yaml:1: `name`: .* may have {LONGEST_NAME} characters"):
        load_task(folder)
    write_task(tmp_path, f"triton2triton/suite/{'n' * LONGEST_NAME}")


def test_a_cache_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    with pytest.raises(MachineError, match=r"the cache cannot be written: .*file.*: .*; set XDG_CACHE_HOME"):
        BuildCache(tmp_path / "file" / "cache").staging().__enter__()


def test_a_program_that_may_not_be_executed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["/bin/sh", "-c", 'echo > "$2"', "sh"]
    assert build_worker(command, {}, BuildCache(tmp_path), makes_a_program).name == "hip_worker"
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(MachineError, match=r"hip_worker cannot be executed: .* noexec; set XDG_CACHE_HOME"):
        build_worker(command, {}, BuildCache(tmp_path), makes_a_program)


def makes_a_program(
    command: Sequence[str | Path], *, timeout_s: float, cwd: Path | None, env: Mapping[str, str] | None
) -> Finished:
    """Make what the command names after `-o`, executable."""
    made = Path(command[[*command].index("-o") + 1])
    made.write_text("program", encoding="utf-8")
    made.chmod(0o755)
    return Finished(0, "", 0.0)


def test_a_folder_that_lets_no_code_be_loaded_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch.require_executable(tmp_path)
    flags = os.statvfs_result((4096, 4096, 1, 1, 1, 1, 1, 1, os.ST_NOEXEC, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: flags)
    with pytest.raises(MachineError, match=r"cannot be loaded from .* mounted noexec; set TMPDIR"):
        scratch.require_executable(tmp_path)


@pytest.mark.parametrize(
    ("ends", "kind", "said"),
    [
        (Finished(-9, "", 60.0, timed_out=True), InfrastructureError, r"did not end within \d+ s; repeat"),
        (Finished(1, "cannot find -lboost_context", 1.0), MachineError, "Boost.Context is missing: install"),
        (Finished(1, "internal compiler error", 1.0), InfrastructureError, "internal compiler error"),
    ],
)
def test_a_compiler_that_fails_otherwise_is_no_missing_package(
    tmp_path: Path, ends: Finished, kind: type[ArenaError], said: str
) -> None:
    def run(command: list[str], *, timeout_s: float, cwd: Path, env: dict[str, str]) -> Finished:
        return Finished(0, "g++ 13", 0.0) if "--version" in command else ends

    with pytest.raises(kind, match=said) as problem:
        _ = HipCpuToolchain(BuildCache(tmp_path), run=run)._boost  # type: ignore[arg-type]
    assert type(problem.value) is kind


def test_a_compiler_that_is_too_slow_to_tell_its_version_is_named(tmp_path: Path) -> None:
    def run(command: list[str], *, timeout_s: float, cwd: Path, env: dict[str, str]) -> Finished:
        return Finished(-9, "", timeout_s, timed_out=True)

    with pytest.raises(InfrastructureError, match=r"`g\+\+ --version` did not end within 60 s; repeat"):
        answered(run, ["g++", "--version"], tmp_path)  # type: ignore[arg-type]
    assert "did not end within 60 s; repeat" in BuildFailed("", 60.0, timed_out=True).reason


def test_a_slow_sandbox_is_not_called_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/bwrap")
    monkeypatch.setattr(process, "run", lambda command, **_: Finished(-9, "", 20.0, timed_out=True))
    bubblewrap.features.cache_clear()
    found = bubblewrap.features()
    bubblewrap.features.cache_clear()
    assert (
        not found.works and found.problem == "/usr/bin/bwrap did not print its help within 20 s; is the machine busy?"
    )


def test_a_lower_limit_of_the_user_is_kept(tmp_path: Path) -> None:
    soft = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)); "
        "from arena.processes.process import run; "
        "print(run(['/bin/sh', '-c', 'ulimit -f'], timeout_s=9.0, file_bytes=1 << 30).output)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str((1 << 20) >> 9) and resource.getrlimit(resource.RLIMIT_FSIZE)[0] == soft


def test_a_traceback_of_the_judge_goes_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    try:
        raise ValueError("three\nfour")
    except ValueError as problem:
        failed = HarnessFailed.of(problem)
    said = without_traceback(f"the judge did not start: {failed.detail}")
    (file,) = (tmp_path / "unseen-arena").iterdir()
    assert said == f"the judge did not start: four; please report it with the traceback in {file}"
    assert "ValueError: three" in file.read_text(encoding="utf-8") and not failed.machine


def test_a_full_disk_is_no_traceback() -> None:
    failed = HarnessFailed.of(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/tmp/kernel.so"))
    assert failed.detail.startswith("/tmp/kernel.so could not be written: No space left on device; make room")


def test_a_child_that_fails_prints_one_line(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text("raise ValueError('π')", encoding="utf-8")
    variables = {**os.environ, "PYTHONPATH": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    done = subprocess.run(
        python_child.python_module("failing"), env=variables, capture_output=True, text=True, check=False
    )
    (file,) = (tmp_path / "state" / "unseen-arena").iterdir()
    assert done.stderr == f"failing: ValueError: π; please report it with the traceback in {file}\n"
    assert done.returncode == 1 and "Traceback" in file.read_text(encoding="utf-8")


def test_a_setting_of_the_machine_is_not_retried(tmp_path: Path) -> None:
    class Judge:
        asked = 0

        def evaluate_once(self, request: object, on_progress: object) -> object:
            self.asked += 1
            raise HarnessFailed.of(MachineError("the cache cannot be written")).error()

    judge = Judge()
    request = control.Request(TASKS / TRITON, tmp_path / "kernel.py", Options())
    with pytest.raises(MachineError, match=r"^the cache cannot be written$"):
        control.evaluated(judge, request, lambda progress: None)  # type: ignore[arg-type]
    assert judge.asked == 1
