"""Real HIP and ROCr on the simulated device. Simulated: nothing here says anything about times."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rocm import machine
from tests.rocm.topology import MI300X, Gpu

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "there")]
PROGRAMS = Path(__file__).with_name("programs")
BUILT = "/root/programs"


def run(*command: str, gpu: Gpu = MI300X, timeout_s: float = 60.0) -> subprocess.CompletedProcess[str]:
    return machine.run(command, gpu=gpu, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout_s)


@pytest.fixture(scope="module")
def program() -> str:
    """The test program, built by the environment's hipcc."""
    path = f"{BUILT}/kernels"
    build = f"mkdir -p {BUILT} && hipcc -O2 --offload-arch=gfx942 -o {path} {PROGRAMS}/kernels.hip"
    done = run("sh", "-c", build)
    assert done.returncode == 0, done.stdout
    return path


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
