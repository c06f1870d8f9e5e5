"""What a candidate does to its own worker; the same judge then passes an honest kernel."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from arena.judge.process.client import JudgeClient
from arena.results.verdict import Status
from tests.faults.runs import RMS_NORM, SOFTMAX, Faulty, check, in_hip, in_python

SEGFAULT = "import ctypes\nctypes.string_at(16)"
HANG = "while True:\n    pass"
HOG = "hog = [bytearray(b'1') * (64 << 20) for _ in range(96)]"
HOG_IN_A_CHILD = """\
import contextlib, os, time
if os.fork() == 0:
    with contextlib.suppress(PermissionError):  # where the sandbox forbids it
        os.setsid()
    if os.fork() == 0:
        hog = [bytearray(b'1') * (64 << 20) for _ in range(96)]
        time.sleep(60)
    time.sleep(60)
time.sleep(60)"""
FLOOD = """\
if not globals().get('flooded'):
    globals()['flooded'] = True
    for _ in range(1200):
        print('x' * 1000000)"""
ON_EVERY_FILE = """\
import os, struct
for file in range(3, 64):
    try:
        os.write(file, {})
    except OSError:
        continue"""
BODIES = {
    "6 MiB": """b'{"type":"Failed","blame":"load_error","detail":"' + b"x" * (6 << 20) + b'"}'""",
    "nested": """b'{"type":"Kernels","kernels":[{"x":' + b"[" * 100000""",
    "no UTF-8": """b'{"type":"Failed","blame":"load_error","detail":"\\xff"}'""",
    "many digits": """b'{"type":"Kernels","kernels":[{"kernel":"k","registers":' + b"9" * 4000 + b'}]}'""",
}
GIB = 1 << 30


@pytest.mark.slow
def test_segfault(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    check(Faulty(tmp_path, RMS_NORM, in_python(SEGFAULT)).run(cpu_judge), Status.CRASH, "SIGSEGV")


def test_segfault_in_a_kernel(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    kernel = in_hip("*reinterpret_cast<volatile int*>(16) = 1;")
    check(Faulty(tmp_path, SOFTMAX, kernel).run(cpu_judge), Status.CRASH, "SIGSEGV")


@pytest.mark.slow
def test_hang_in_a_kernel(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    kernel = in_hip("for (volatile int spin = 0; spin >= 0;) spin = 1;")
    check(Faulty(tmp_path, SOFTMAX, kernel, {"call_timeout_s": 3.0}).run(cpu_judge), Status.TIMEOUT, "within 3 s")


@pytest.mark.slow
def test_hang_in_python(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    faulty = Faulty(tmp_path, RMS_NORM, in_python(HANG), {"call_timeout_s": 3.0})
    check(faulty.run(cpu_judge), Status.TIMEOUT, "within 3 s")


@pytest.mark.slow
def test_host_out_of_memory(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    faulty = Faulty(tmp_path, RMS_NORM, in_python(HOG), {"host_memory_bytes": 2 * GIB})
    check(faulty.run(cpu_judge), Status.OUT_OF_MEMORY, "at most 2.0 GiB")


def test_a_child_cannot_be_started_to_take_memory(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    if "seccomp" not in cpu_judge.environment.isolation:
        pytest.skip("without a system call filter a child can be started")
    check(Faulty(tmp_path, RMS_NORM, in_python(HOG_IN_A_CHILD)).run(cpu_judge), Status.LAUNCH_ERROR, "not permitted")


@pytest.mark.slow
def test_a_gigabyte_of_output(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    """A chatty kernel is a right one: what it prints is cut, and no file grows to the limit on files."""
    before = shutil.disk_usage("/tmp").free
    check(Faulty(tmp_path, RMS_NORM, in_python(FLOOD)).run(cpu_judge), Status.PASSED)
    assert before - shutil.disk_usage("/tmp").free < GIB // 2


@pytest.mark.gpu
def test_segfault_on_a_gpu(tmp_path: Path, gpu_judge: JudgeClient) -> None:
    check(Faulty(tmp_path, RMS_NORM, in_python(SEGFAULT)).run(gpu_judge), Status.CRASH, "SIGSEGV")


@pytest.mark.gpu
def test_illegal_device_access(tmp_path: Path, gpu_judge: JudgeClient) -> None:
    """The context that it poisons is its worker's, which is not used again."""
    kernel = in_hip("*reinterpret_cast<volatile int*>(16) = 1;")
    check(Faulty(tmp_path, SOFTMAX, kernel).run(gpu_judge), Status.LAUNCH_ERROR)


@pytest.mark.gpu
def test_hang_on_a_gpu(tmp_path: Path, gpu_judge: JudgeClient) -> None:
    kernel = in_hip("for (volatile int spin = 0; spin >= 0;) spin = 1;")
    check(Faulty(tmp_path, SOFTMAX, kernel, {"call_timeout_s": 5.0}).run(gpu_judge), Status.TIMEOUT, "within 5 s")


@pytest.mark.gpu
@pytest.mark.parametrize("at_once", [True, False], ids=["one allocation", "all there is"])
def test_device_out_of_memory(tmp_path: Path, gpu_judge: JudgeClient, at_once: bool) -> None:
    much = "torch.empty(1 << 50, dtype=torch.uint8, device='cuda')"
    fault = (
        f"import torch\nkept = {much}"
        if at_once
        else f"import torch\nkept = [{much.replace('50', '32')} for _ in range(99)]"
    )
    check(Faulty(tmp_path, RMS_NORM, in_python(fault)).run(gpu_judge), Status.OUT_OF_MEMORY)


@pytest.mark.slow
def test_a_hip_entry_that_says_out_of_memory(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    """What `hipMalloc` answers on a full device, returned by an entry that hands errors on."""
    kernel = in_hip("").replace("return hipGetLastError();", "return hipErrorOutOfMemory;")
    check(Faulty(tmp_path, SOFTMAX, kernel).run(cpu_judge), Status.OUT_OF_MEMORY, "no memory left")


@pytest.mark.slow
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_hostile_answers(tmp_path: Path, cpu_judge: JudgeClient, body: str) -> None:
    """A candidate that answers for its worker ends itself; the very same judge goes on."""
    judge = cpu_judge.pid
    fault = ON_EVERY_FILE.format(f'struct.pack("!I", len({body})) + {body}')
    trial = check(
        Faulty(tmp_path, RMS_NORM, in_python(fault)).run(cpu_judge),
        Status.CRASH,
        "sent the judge what no unchanged process sends",
    )
    assert len(trial.detail) < 9000 and cpu_judge.pid == judge
