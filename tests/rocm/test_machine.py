"""Real HIP and ROCr on the simulated device. Simulated: nothing here says anything about times."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.rocm import machine
from tests.rocm.topology import MI300X

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "there")]
PROGRAMS, DRIVER = (Path(__file__).with_name(name) for name in ("programs", "driver"))
BUILT = "/root/programs"


def run(*command: str, timeout_s: float = 90.0, **machine_of: Any) -> subprocess.CompletedProcess[str]:
    return machine.run(
        command,
        **machine_of,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=timeout_s,
    )


def build(name: str) -> str:
    """A test program, built by the environment's hipcc."""
    made = f"mkdir -p {BUILT} && hipcc -O2 --offload-arch=gfx942 -o {BUILT}/{name} {PROGRAMS}/{name}.hip"
    done = run("sh", "-c", made)
    assert done.returncode == 0, done.stdout
    return f"{BUILT}/{name}"


def faulty_driver(name: str, file: str, right: str, wrong: str) -> str:
    """The driver with one change of its source, built beside it."""
    text = (DRIVER / file).read_text(encoding="utf-8")
    assert text.count(right) == 1
    folder = machine.environment_folder() / "root" / BUILT.lstrip("/") / name
    shutil.copytree(DRIVER, folder, dirs_exist_ok=True)
    (folder / file).write_text(text.replace(right, wrong), encoding="utf-8")
    inside = f"{BUILT}/{name}"
    done = run("sh", "-c", f"cd {inside} && gcc -O2 -shared -fPIC -o libkfd.so *.c -ldl -lpthread")
    assert done.returncode == 0, done.stdout
    return f"{inside}/libkfd.so"


@pytest.fixture(scope="module")
def program() -> str:
    return build("kernels")


def test_rocminfo_lists_the_device() -> None:
    done = run("rocminfo")
    assert done.returncode == 0 and "AMD Instinct MI300X" in done.stdout
    assert "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-" in done.stdout


@pytest.mark.parametrize("attempt", range(3))
def test_kernels_copies_streams_and_a_graph_are_right(program: str, attempt: int) -> None:
    """More than once: a wake-up that is lost now and then shows as a time limit."""
    done = run(program)
    assert done.returncode == 0 and done.stdout.count(" right\n") == 8, done.stdout


def test_a_wrong_wave_size_in_the_topology_is_found(program: str) -> None:
    done = run(program, gpu=replace(MI300X, wave_size=32))
    assert done.returncode != 0, done.stdout


def test_an_access_to_freed_memory_is_a_fault() -> None:
    done = run(build("freed"))
    assert "outside of every buffer" in done.stdout and "Memory access fault by GPU node-1" in done.stdout
    assert "not found" not in done.stdout and done.returncode != 0


def test_kernel_arguments_at_a_wrong_offset_are_found(program: str) -> None:
    copied = "memcpy(asked.packet, packet, sizeof packet);"
    moved = f"{copied} asked.packet[41] += 16;  // a page further"
    done = run(program, library=faulty_driver("arguments", "packets.c", copied, moved))
    assert done.returncode != 0 and done.stdout.count(" right\n") < 8, done.stdout


def test_a_barrier_packet_that_does_not_wait_is_found(program: str) -> None:
    right = "return any ? done > 0 || !waits_for : done == waits_for;"
    done = run(program, library=faulty_driver("barriers", "packets.c", right, "return 1;"))
    assert "two streams that wait by events  WRONG" in done.stdout


JUDGED = (sys.executable, "-P", "-m", "arena", "evaluate", "hip2hip/modules/gelu")
OPTIONS = ("--platform", "rocm-sim", "--effort", "correctness", "--seeds", "1", "--no-heldout", "--max-work", "1e4")
KERNEL = machine.ROOT / "tasks/hip2hip/modules/gelu/kernel.hip"


def test_a_shared_buffer_off_by_a_page_is_found_before_the_first_candidate() -> None:
    right = "MAP_SHARED | MAP_FIXED, file, 0) != at) return ENOMEM;\n    uint32_t"
    driver = faulty_driver("sharing", "kfd.c", right, right.replace("file, 0)", "file, 4096)"))
    tried = {"ARENA_IPC_FALLBACK": "as if the other way had been tried"}
    done = run(*JUDGED, str(KERNEL), *OPTIONS, library=driver, variables=tried, timeout_s=180.0)
    assert done.returncode == 3 and "bytes came back wrong" in " ".join(done.stdout.split()), done.stdout


def test_the_judge_passes_a_baseline_and_finds_a_wrong_kernel() -> None:
    """Real fork server, sandbox, worker and buffers; the isolation of the record says which."""
    done = run(*JUDGED, str(KERNEL), *OPTIONS, timeout_s=180.0)
    assert done.returncode == 0 and "landlock" in done.stdout and "the baseline unchanged" in done.stdout, done.stdout
    text = KERNEL.read_text(encoding="utf-8")
    right, wrong = "0.5f *", "0.501f *"
    assert right in text
    folder = machine.environment_folder() / "root" / BUILT.lstrip("/")
    (folder / "wrong.hip").write_text(text.replace(right, wrong), encoding="utf-8")
    done = run(*JUDGED, f"{BUILT}/wrong.hip", *OPTIONS, timeout_s=180.0)
    assert done.returncode == 1 and "wrong_result" in done.stdout, done.stdout
