"""What a killed process leaves behind is found by its name, and what a living one uses is let be."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from arena.processes import scratch


@contextmanager
def reading_from(source: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process that would wait for long."""
    waits = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
    with subprocess.Popen(waits, stdin=source, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def gone() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen(["true"]) as process:
        pass
    return process.pid


@pytest.mark.parametrize("owner_lives", [True, False])
def test_who_waits_for_a_killed_process_is_ended(monkeypatch: pytest.MonkeyPatch, owner_lives: bool) -> None:
    """Bubblewrap does, where the runner was killed while a box was made."""
    owner = os.getpid() if owner_lives else gone()
    with monkeypatch.context() as other:
        other.setattr(os, "getpid", lambda: owner)
        given = scratch.in_memory("stdin", b"a prompt")
    with reading_from(given) as process:
        scratch.sweep()
        if owner_lives:
            assert process.poll() is None
        else:
            assert process.wait(10) == -9
    os.close(given)


def test_a_file_in_memory_is_at_its_beginning() -> None:
    given = scratch.in_memory("stdin", b"0123456789" * 100_000)
    with open(given, "rb") as file:  # noqa: PTH123
        assert file.read() == b"0123456789" * 100_000


@pytest.mark.parametrize("owner_lives", [True, False])
def test_folders_of_killed_processes_are_removed(monkeypatch: pytest.MonkeyPatch, owner_lives: bool) -> None:
    owner = os.getpid() if owner_lives else gone()
    with monkeypatch.context() as other:
        other.setattr(os, "getpid", lambda: owner)
        folder = scratch.scratch("host")
    scratch.sweep()
    assert os.path.isdir(folder.name) is owner_lives  # noqa: PTH112
    folder.cleanup()


def test_what_a_container_made_is_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its processes and folders may be seen from outside, where its numbers mean others."""
    owner = gone()
    with monkeypatch.context() as other:
        other.setattr(os, "getpid", lambda: owner)
        other.setattr(scratch, "_namespace", lambda: 1)
        given, folder = scratch.in_memory("stdin", b""), scratch.scratch("host")
    with reading_from(given) as process:
        scratch.sweep()
        assert process.poll() is None
    assert os.path.isdir(folder.name)  # noqa: PTH112
    os.close(given)
    folder.cleanup()


def test_a_folder_is_removed_however_deep_and_forbidding_it_is(tmp_path: Path) -> None:
    """What a candidate leaves must not end its judge: `shutil.rmtree` raises `RecursionError` here."""
    top = tmp_path / "home"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    (top / "link").symlink_to(tmp_path)
    (top / "shut").mkdir(mode=0)
    top.chmod(0)
    scratch.remove(top)
    assert list(tmp_path.iterdir()) == []
    scratch.remove(top)
