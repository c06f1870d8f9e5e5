"""Processes that do not keep to the rules of sharing, with real ROCr. Simulated: a race of two would not show."""

from __future__ import annotations

import re
import sys

import pytest

from tests.candidates import HERE, assembled
from tests.rocm import machine
from tests.rocm.test_machine import BUILT, PROGRAMS, run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "there")]


def hostile(what: str) -> str:
    done = run(sys.executable, "-P", str(PROGRAMS / "hostile.py"), what, timeout_s=200.0)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_worker_maps_no_neighbour_of_its_buffer() -> None:
    """The first line shows that the test can fail: without whole blocks the neighbour is there."""
    said = hostile("neighbour")
    assert "plain allocations: the secret in" in said, said
    assert "buffers of the platform: nothing in 4194304 mapped bytes" in said, said


def test_a_silent_client_does_not_hold_up_the_judge() -> None:
    """A worker waits as long as it is there: the limit of its call ends that."""
    said = hostile("silent")
    assert "in time: True" in said and "a worker meanwhile: waits" in said, said
    assert "a worker afterwards: nothing in 4194304 mapped bytes" in said, said


def test_a_device_that_disappears_is_no_result_of_the_candidate() -> None:
    """As after a reset of the driver: what it says is infrastructure's, and it says it soon."""
    folder = machine.environment_folder() / "root" / BUILT.lstrip("/")
    folder.mkdir(exist_ok=True)
    assembled(HERE / "cheats" / "softmax" / "loops_forever.hip", folder)
    script = str(PROGRAMS / "device_gone.sh")
    done = run("sh", script, sys.executable, f"{BUILT}/loops_forever.hip", timeout_s=200.0)
    said = re.search(r"exit code (\d+) after (\d+) s", done.stdout)
    assert said and said[1] == "3" and int(said[2]) < 120, done.stdout
    assert "the device process is gone" in done.stdout, done.stdout
