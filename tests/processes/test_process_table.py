"""What `/proc` says of processes that a test has started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from arena.processes.process_table import all_processes, children, descendants, is_dead, start_time, thread_states

PARENT = """
import subprocess, sys
child = subprocess.Popen(["sleep", "60"], start_new_session=True)
print(child.pid, flush=True)
child.wait()
"""


@pytest.fixture
def family() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process, and the id of its child, which has a session of its own."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    yield parent, child
    os.kill(child, 9)
    parent.communicate(timeout=60)


def test_who_descends_from_whom(family: tuple[subprocess.Popen[bytes], int]) -> None:
    parent, child = family
    assert descendants(parent.pid) == {parent.pid, child} <= descendants(os.getpid()) <= set(all_processes())
    assert list(children(parent.pid)) == [child] and list(children(child)) == []
    assert int(start_time(os.getpid())) <= int(start_time(parent.pid)) <= int(start_time(child))
    assert set(thread_states(child)) <= {"S", "R", "D"} and not is_dead(child)


def test_a_process_that_has_ended_has_nothing() -> None:
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert is_dead(ended.pid) and start_time(ended.pid) == "" and list(thread_states(ended.pid)) == ["Z"]
    ended.wait()
    assert is_dead(ended.pid) and start_time(ended.pid) == "" and list(thread_states(ended.pid)) == []
    assert descendants(ended.pid) == set() and list(children(ended.pid)) == []


def test_a_process_that_ends_while_it_is_read_has_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> list[str]:
        raise ProcessLookupError

    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, gone)
    assert list(children(os.getpid())) == [] and list(thread_states(os.getpid())) == []


def test_a_name_may_hold_anything() -> None:
    """A parenthesis in it, a space, and what is no text: the fields begin after the last parenthesis."""
    script = "import ctypes, sys; ctypes.CDLL(None).prctl(15, b') Z 1 \\xff)'); print('named', flush=True); input()"
    named = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert named.stdout is not None and named.stdout.readline() == b"named\n"
    assert not is_dead(named.pid) and named.pid in descendants(os.getpid())
    assert int(start_time(named.pid)) >= int(start_time(os.getpid()))
    named.communicate(b"\n", timeout=60)
