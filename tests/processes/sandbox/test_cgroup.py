"""The control group of a box, where one can be made."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.processes.sandbox.cgroup import ControlGroup, own_group


@pytest.fixture
def group() -> Iterator[ControlGroup]:
    made = ControlGroup.make()
    if made is None:
        pytest.skip("no control group can be made here")
    yield made
    made.kill()
    made.remove()


def ticks(process: int) -> int:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_frozen_group_stands_still_and_can_be_ended(group: ControlGroup) -> None:
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
        assert group.add(busy.pid) and group.members() == {busy.pid}
        group.freeze()
        before = ticks(busy.pid)
        time.sleep(0.2)
        assert ticks(busy.pid) == before
        group.kill()
        assert busy.wait(5) == -9
    group.remove()
    assert not group.path.exists()


def test_groups_of_harnesses_that_were_killed_are_swept(group: ControlGroup) -> None:
    code = "from arena.processes.sandbox.cgroup import ControlGroup; print(ControlGroup.make().path.name)"
    left = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    parent = own_group()
    assert parent is not None and (parent / left).exists()
    again = ControlGroup.make()
    assert again is not None
    again.remove()
    assert not (parent / left).exists() and group.path.exists()


def test_without_control_groups_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.processes.sandbox.cgroup.own_group", lambda: None)
    assert ControlGroup.make() is None
