"""Whose processes are whose: a box must not end what is not its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from arena.agents.box.processes import Namespace

ALONE = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--map-root-user", "--mount")


def mount_namespace(process: int | str = "self") -> int:
    return Path(f"/proc/{process}/ns/mnt").stat().st_ino


@contextmanager
def apart() -> Iterator[int]:
    """The id of a process that sleeps in a mount namespace of its own."""
    child = subprocess.Popen([*ALONE, "sleep", "600"], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60.0
        while mount_namespace(child.pid) == mount_namespace():
            if child.poll() is not None or time.monotonic() > deadline:
                pytest.skip("no mount namespaces to be had")
            time.sleep(0.01)
        yield child.pid
    finally:
        child.kill()
        child.wait()


@pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare on this machine")
def test_the_number_of_a_namespace_that_has_ended_is_given_to_no_other() -> None:
    """The kernel gives it to the next, which was a candidate's host that a box then ended."""
    with apart() as process:
        namespace = Namespace(process, "mnt")
        assert namespace.members() == {process}
    assert namespace.members() == set()
    for _ in range(20):
        with apart() as process:
            assert mount_namespace(process) != namespace.inode
            assert namespace.members() == set()
