"""Files of tests/cheats on the simulated device: wrong answers, writes past the end, escapes and ends of processes."""

from __future__ import annotations

import json
import sys

import pytest

from tests.rocm import machine
from tests.rocm.cheats import OTHER, fixtures
from tests.rocm.test_machine import BUILT, run

NAMES = ("cached", "half_of_it", "mutates_input", "writes_past_the_end", "exits_early", "segfault", "honest_waves")
ESCAPES = ("signals_its_parent", "reads_the_reference", "writes_to_every_descriptor", "plants_a_library")


def test_each_name_is_a_file_that_is_run() -> None:
    names = {one.path.stem for one in fixtures([])}
    assert {*NAMES, *ESCAPES, *OTHER} <= names and not {*NAMES, *ESCAPES} & OTHER.keys()


@pytest.mark.slow
@pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "there")
@pytest.mark.parametrize("names", [NAMES, ESCAPES], ids=["answers", "escapes"])
def test_files_get_the_status_of_a_gpu(names: tuple[str, ...]) -> None:
    done = run(sys.executable, "-P", "-m", "tests.rocm.cheats", f"{BUILT}/cheats.json", *names, timeout_s=290.0)
    assert done.returncode == 0, done.stdout
    written = machine.environment_folder() / "root" / BUILT.lstrip("/") / "cheats.json"
    rows = json.loads(written.read_text(encoding="utf-8"))["rows"]
    assert {row["name"] for row in rows} == set(names)
    assert all(row["seen"] in row["expected"] for row in rows), rows
