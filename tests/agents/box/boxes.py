"""Boxes for tests, and the programs that misbehave in them."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from arena.agents.box import Box, Boxed, BoxPlan, bubblewrap, fallback

MISBEHAVING = Path(__file__).parent / "misbehaving"


def folders(top: Path) -> BoxPlan:
    """A plan with its three folders in `top`."""
    plan = BoxPlan(workspace=top / "workspace", home=top / "home", tools=top / "tools")
    for folder in (plan.workspace, plan.home, plan.tools):
        folder.mkdir()
    return plan


def make(kind: str, plan: BoxPlan) -> Box:
    """A box of that kind; skips the test where it cannot be had."""
    if kind == "fallback":
        return fallback.FallbackBox(plan)
    found = bubblewrap.features()
    if not found.works:
        pytest.skip(found.problem)
    return bubblewrap.BubblewrapBox(plan, found)


def python(kind: str) -> str:
    """A Python that can be run in the box: under the fallback, root's agent is `nobody` and needs one it may read."""
    ours = Path(sys.executable).resolve()
    readable = all(folder.stat().st_mode & 0o001 for folder in (ours, *ours.parents))
    if kind == "bubblewrap" or os.geteuid() != 0 or readable:
        return sys.executable
    found = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if found is None:
        pytest.skip("no Python that every user may run")
    return found


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and what it printed."""

    code: int | None
    stdout: str
    stderr: str

    @property
    def last(self) -> Any:
        """The last line printed, as JSON."""
        return json.loads(self.stdout.strip().splitlines()[-1])


def finish(boxed: Boxed) -> Outcome:
    """Read both pipes to their end; for commands that print little."""
    stdout, stderr = boxed.stdout.read(), boxed.stderr.read()
    wait_until(lambda: boxed.poll() is not None)
    return Outcome(boxed.poll(), stdout.decode(), stderr.decode())


def run(kind: str, plan: BoxPlan, command: Sequence[str], stdin: bytes = b"") -> Outcome:
    """Run a command in a box of its own."""
    with make(kind, plan) as box:
        return finish(box.start(command, stdin))


def misbehave(kind: str, plan: BoxPlan, script: str, *arguments: str) -> list[str]:
    """The command that runs one of the programs, which is put into the workspace."""
    shutil.copy(MISBEHAVING / script, plan.workspace / script)
    return [python(kind), "-I", script, *arguments]


def wait_until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait; fails where it does not come about."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.005)


def with_network(plan: BoxPlan, *allowed: str) -> BoxPlan:
    """The plan with endpoints that may be reached."""
    return replace(plan, network=allowed)
