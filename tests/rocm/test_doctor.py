"""Items of `arena doctor --quick` on the simulated device: those that need no time."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from tests.rocm import machine
from tests.rocm.doctor import NOT_RUN, items
from tests.rocm.test_machine import BUILT, faulty_driver, run

here = pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "there")
_LEFT_OPEN = {"hip-python agrees", "a code object by hip-python", "HIP for NVIDIA GPUs"}
"""a warning or skipped where hip-python or nvcc is not installed"""


def outcomes(*asked: str, **machine_of: Any) -> Mapping[str, str]:
    options = [part for text in asked for part in ("--item", text)]
    done = run(
        *(sys.executable, "-P", "-m", "tests.rocm.doctor", f"{BUILT}/doctor.json", *options),
        **machine_of,
        timeout_s=290.0,
    )
    assert done.returncode in (0, 1), done.stdout
    written = machine.environment_folder() / "root" / BUILT.lstrip("/") / "doctor.json"
    return {row["item"]: row["outcome"] for row in json.loads(written.read_text(encoding="utf-8"))["items"]}


def test_each_item_of_rocm_is_run_or_has_its_reason() -> None:
    names = {item.name for item in items([])}
    assert {"device facts", "buffer shared with a worker", "a write past the end"} <= names
    assert not names & NOT_RUN.keys() and len(names) > len(NOT_RUN)


@pytest.mark.slow
@here
def test_every_item_passes() -> None:
    found = outcomes()
    other = {name: outcome for name, outcome in found.items() if outcome != "pass" and name not in _LEFT_OPEN}
    assert not other and found.keys() == {item.name for item in items([])}


@pytest.mark.slow
@here
def test_a_driver_that_counts_no_free_memory_fails() -> None:
    right = "case AMDKFD_IOC_AVAILABLE_MEMORY: return free_memory(asked);"
    driver = faulty_driver("doctor", "kfd.c", right, right.replace("return free_memory(asked);", "return 0;"))
    assert outcomes("device facts", library=driver) == {"device facts": "fail"}
