"""The walls around untrusted code, tried from the inside of a child process."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from arena.processes.sandbox import FILE_LIMIT_BYTES

# Enters the walls, tries what they should stop, and says what happened.
_INSIDE = """
import json, os, resource, socket, sys
from pathlib import Path
from arena.processes.sandbox import Namespaces, enter

port, *folders = json.loads(sys.argv[1])
level = enter(Namespaces(tuple(folders)))

def connects():
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError as problem:
        return type(problem).__name__
    return "connected"

status = dict(line.split(":\\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\\t" in line)
print(json.dumps({
    "level": level.split("+"),
    "connects": connects(),
    "listed": [sorted(os.listdir(folder)) if os.path.isdir(folder) else None for folder in folders],
    "leader": os.getsid(0) == os.getpid(),
    "limits": [resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_FSIZE)],
    "new_privileges": status["NoNewPrivs"] == "0",
}))
"""


def inside(*arguments: int | str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", _INSIDE, json.dumps(arguments)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("secrets")
    (place / "heldout.yaml").write_text("- {M: 1}\n", encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def said(folder: Path) -> dict[str, Any]:
    """What a process behind the walls says, while someone listens on this machine's loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return inside(port, str(folder))


def needs(said: dict[str, Any], wall: str) -> None:
    if wall not in said["level"]:
        pytest.skip(f"this machine allows no {wall} namespace")


def test_a_session_of_its_own(said: dict[str, Any]) -> None:
    assert said["level"][0] == "session" and said["leader"]


def test_no_network(said: dict[str, Any]) -> None:
    needs(said, "network")
    assert said["connects"] != "connected"


def test_a_hidden_folder_is_empty_inside_and_intact_outside(said: dict[str, Any], folder: Path) -> None:
    needs(said, "mount")
    assert said["listed"] == [[]]
    assert [path.name for path in folder.iterdir()] == ["heldout.yaml"]
    assert (folder / "heldout.yaml").read_text(encoding="utf-8") == "- {M: 1}\n"


def test_limits_and_privileges(said: dict[str, Any]) -> None:
    assert said["limits"] == [[0, 0], [FILE_LIMIT_BYTES, FILE_LIMIT_BYTES]]
    assert said["new_privileges"] is False


def test_a_folder_that_cannot_be_hidden_leaves_the_others_hidden(said: dict[str, Any], folder: Path) -> None:
    """And the level does not claim what is not so."""
    needs(said, "mount")
    again = inside(1, str(folder / "missing"), str(folder))
    assert again["listed"] == [None, []]
    assert "mount" not in again["level"]
