"""Two servers for the adapters: the real judge, where `tools/external.sh` has started one, and a fake one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from arena.runs.serve.routes import EpisodeServer
from tests.runs.serve.serving import Judge, served

TASK = "triton2triton/normalization/rms_norm"


class Address(NamedTuple):
    """Where a server listens."""

    address: str
    token: str


@pytest.fixture
def judge() -> Address:
    """`arena serve` with the real judge on the CPU platform; its tasks: rms_norm."""
    if "ARENA_URL" not in os.environ:
        pytest.skip("no server in ARENA_URL; tools/external.sh starts one")
    return Address(os.environ["ARENA_URL"], os.environ["ARENA_TOKEN"])


@contextmanager
def serving(folder: Path, judge: Judge) -> Iterator[Address]:
    """Two tasks, three evaluations."""
    with (
        served(folder, judge, evaluations=3) as (episodes, _),
        EpisodeServer(episodes) as server,
    ):
        yield Address(server.address, server.token)


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Address]:
    """A server whose judge believes a kernel's last word: `slow`, `same` or `fast`."""
    with serving(tmp_path, Judge()) as address:
        yield address


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[Address]:
    """A server whose judge fails as a harness does, on the first task."""
    judge = Judge()
    judge.failing.add("scale")
    with serving(tmp_path, judge) as address:
        yield address
