"""Judge and worker in one empty network, and where namespaces are refused: what a worker reaches, tried for real."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.errors import UsageError
from arena.processes.sandbox import landlock, network
from arena.processes.sandbox.escape import Attempt, Escape, attempt_escape
from tests.processes.sandbox import sharing

ROOT = Path(__file__).parents[3]
REFUSING = [sys.executable, "-m", "tests.processes.sandbox.refusing"]
_TELL = """
import json, sys
from dataclasses import asdict
from arena.processes.sandbox.escape import attempt_escape
print(json.dumps(asdict(attempt_escape(shared=sys.argv[1] == "shared"))))
"""


@pytest.fixture(scope="module", autouse=True)
def walls() -> None:
    level = attempt_escape().level
    missing = [wall for wall in ("+network", "+landlock", "+seccomp") if wall not in level]
    if missing or landlock.abi() < landlock.SIGNALS_ABI:
        pytest.skip(f"this machine has not all that is tried here: {level}")


@pytest.fixture
def outside() -> Iterator[tuple[int, str]]:
    """A port of TCP and UDP, and the name of an abstract Unix socket, of this process; all of them can be reached."""
    name = f"arena-outside-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        port = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        unix.bind("\0" + name)
        unix.listen()
        assert sharing._connected("\0" + name) == "connected" and sharing._sent(port) == "sent"
        yield port, name


def reached(folder: Path, outside: tuple[int, str], *, shared: bool, refused: bool) -> dict[str, str]:
    """What the worker of a judge reaches, where the judge starts as `JudgeClient` starts it."""
    port, name = outside
    command = [sys.executable, "-m", "tests.processes.sandbox.sharing", str(folder / "home"), str(port), name]
    line = [*(REFUSING if refused else []), *network.starting(command, shared=shared)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    said: dict[str, str] = json.loads(done.stdout)
    return said


def escape(mode: str, *, refused: bool) -> Escape:
    line = [*(REFUSING if refused else []), sys.executable, "-c", _TELL, mode]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    return Escape(said["level"], tuple(Attempt(**one) for one in said["attempts"]))


def test_a_worker_with_its_own_namespace_does_not_reach_the_judge(outside: tuple[int, str], tmp_path: Path) -> None:
    """Which is why buffers that travel over an abstract Unix socket need what follows."""
    said = reached(tmp_path, outside, shared=False, refused=False)
    assert said["level"].startswith("session+network+")
    assert said["judge"] == said["outside"] == "ConnectionRefusedError"


def test_in_the_judges_namespace_a_file_is_handed_over_and_nothing_else_reached(
    outside: tuple[int, str], tmp_path: Path
) -> None:
    said = reached(tmp_path, outside, shared=True, refused=False)
    assert said["level"].startswith("session+shared-network+")
    assert said["judge"] == sharing.WORDS.decode()
    assert said["outside"] == "ConnectionRefusedError"
    assert "Error" in said["TCP"] and "Error" in said["UDP"]


@pytest.mark.parametrize("shared", [True, False])
def test_where_namespaces_are_refused_the_filter_and_landlock_stand_in(
    outside: tuple[int, str], tmp_path: Path, shared: bool
) -> None:
    said = reached(tmp_path, outside, shared=shared, refused=True)
    parts = said["level"].split("+")
    assert {"network", "shared-network"}.isdisjoint(parts) and "no-inet" in parts
    assert ("shared-scope" in parts) == shared
    assert said["judge"] == (sharing.WORDS.decode() if shared else "PermissionError")
    assert said["outside"] == said["TCP"] == said["UDP"] == "PermissionError"


def test_nothing_gets_out_of_the_judges_namespace() -> None:
    tried = escape("shared", refused=False)
    assert "shared-network" in tried.level.split("+")
    assert tried.open == () and len(tried.attempts) >= 28


@pytest.mark.parametrize(("mode", "part"), [("own", "no-inet"), ("shared", "shared-scope")])
def test_what_gets_out_where_namespaces_are_refused(mode: str, part: str) -> None:
    """Modes of files alone, which need the read-only view of a mount namespace (docs/develop/isolation.md)."""
    tried = escape(mode, refused=True)
    assert part in tried.level.split("+") and "mount" not in tried.level
    assert {attempt.what for attempt in tried.open} <= {"lock a file away that it was not shown"}


_SPEAKS = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as own:
    socket.create_connection(own.getsockname()).close()
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 1.0).close()
except OSError as problem:
    print(type(problem).__name__)
"""


def test_a_loopback_of_its_own_leads_nowhere_else(outside: tuple[int, str]) -> None:
    """As a profiler needs it that speaks to the program which it starts."""
    command = network.starting([sys.executable, "-c", _SPEAKS, str(outside[0])], shared=True, loopback=True)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert (done.stdout.strip(), done.stderr) == ("ConnectionRefusedError", "")


def test_the_device_decides_unless_the_user_does() -> None:
    assert network.wanted(True, {}) and not network.wanted(False, {})
    assert network.wanted(False, {network.SWITCH: "shared"}) and not network.wanted(True, {network.SWITCH: "own"})
    with pytest.raises(UsageError, match="ARENA_NETWORK=none"):
        network.wanted(True, {network.SWITCH: "none"})
