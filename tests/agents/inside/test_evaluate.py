"""`./evaluate` as an agent calls it: the script of a workspace, the client, the server, and a service behind it."""

from __future__ import annotations

import ast
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from arena.agents.inside import evaluate
from arena.agents.workspace_server import WorkspaceServer
from arena.results.session import Limits
from arena.runs.service.workspace import prepare
from arena.task.corpus.task_folder import TASKS, load_task
from tests.agents.services import FakeService, feedback
from tests.runs.service.examples import CPU, environment

CLIENT = Path(evaluate.__file__)
PATIENCE_S = 60.0


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace, and beside it the tools."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "work").mkdir()
    shutil.copyfile(CLIENT, tmp_path / "tools" / "evaluate.py")
    prepare(tmp_path / "work", load_task(TASKS / "hip2hip/modules/softmax"), environment(CPU), Limits())
    return tmp_path


def call(
    place: Path, *arguments: str, cwd: str = "work", more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `./evaluate` with nothing but PATH and the tools in its environment."""
    environ = {"PATH": os.environ["PATH"], "ARENA_TOOLS": str(place / "tools"), **(more or {})}
    command = [str(place / "work" / "evaluate"), *arguments]
    return subprocess.run(
        command, cwd=place / cwd, env=environ, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def serving(service: FakeService, place: Path) -> WorkspaceServer:
    return WorkspaceServer(service, place / "tools" / "service.sock")


@pytest.mark.slow(but=["passed", "timeout"])
@pytest.mark.parametrize(
    ("status", "code"), [("passed", 0), ("wrong_result", 1), ("timeout", 1), ("harness_error", 3), (None, 3)]
)
def test_the_exit_code_is_the_verdict(place: Path, status: str | None, code: int) -> None:
    with serving(FakeService(lambda kernel: feedback(status, "what ×")), place):
        done = call(place)
    assert (done.returncode, done.stdout, done.stderr) == (code, "what ×\n", "")


def test_the_workspaces_kernel_is_sent_from_anywhere(place: Path) -> None:
    service = FakeService()
    (place / "work" / "other.hip").write_text("another\n", encoding="utf-8")
    (place / "work" / "kernel.py").write_text("not the kernel\n", encoding="utf-8")
    with serving(service, place):
        assert call(place).returncode == 0
        assert call(place, cwd=".").returncode == 0
        assert call(place, "other.hip", "--profile").returncode == 0
    kernel = (place / "work" / "kernel.hip").read_bytes()
    assert service.kernels == [kernel, kernel, b"another\n"] and service.profiled == [False, False, True]


def test_json_is_the_result(place: Path) -> None:
    with serving(FakeService(lambda kernel: feedback("wrong_result", "error × tolerance")), place):
        done = call(place, "--json", more={"LC_ALL": "C"})
    assert json.loads(done.stdout) == {"status": "wrong_result", "detail": "error × tolerance"}
    assert "×" in done.stdout and done.returncode == 1


def test_help_says_what_the_exit_codes_mean(place: Path) -> None:
    done = call(place, "--help")
    assert done.returncode == 0 and "usage: ./evaluate" in done.stdout and "exit codes:" in done.stdout


@pytest.mark.slow(but=["missing"])
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("missing.hip",), "missing.hip: No such file"),
        (("--loud",), "--loud"),
        (("large.hip",), "1048576"),
        ((".",), "dir"),
    ],
)
def test_a_wrong_call_is_told_so(place: Path, arguments: tuple[str, ...], why: str) -> None:
    (place / "work" / "large.hip").write_bytes(b"x" * (evaluate.MAX_KERNEL_BYTES + 1))
    service = FakeService()
    with serving(service, place):
        done = call(place, *arguments)
    assert done.returncode == 2 and why in done.stderr and done.stdout == "" and service.kernels == []


def test_a_kernel_that_is_no_text_is_told_so(place: Path) -> None:
    (place / "work" / "kernel.hip").write_bytes(b"int \xff")
    with serving(FakeService(), place):
        done = call(place)
    assert done.returncode == 2 and "not UTF-8 text at byte 4" in done.stderr


def test_a_judge_that_is_not_there_is_told_so(place: Path) -> None:
    done = call(place)
    assert done.returncode == 3 and "the judge cannot be reached" in done.stderr
    done = call(place, more={"ARENA_TOOLS": ""})
    assert done.returncode == 3 and "ARENA_TOOLS is not set" in done.stderr


@pytest.mark.slow(but=["form"])
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "closed the connection"),
        (b"nonsense\r\n\r\n", "closed the connection"),
        (b"HTTP/1.0 200 OK\r\n\r\nnonsense", "no JSON"),
        (b"HTTP/1.0 200 OK\r\n\r\n[]", "form"),
        (b'HTTP/1.0 200 OK\r\n\r\n{"text": 1}', "form"),
    ],
)
def test_an_answer_that_is_none_is_told_so(place: Path, answer: bytes, why: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(place / "tools" / "service.sock"))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                while not connection.recv(65536).endswith(b"}"):
                    pass
                connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        done = call(place)
    assert done.returncode == 3 and why in done.stderr


def test_it_waits_for_its_turn(place: Path) -> None:
    service = FakeService()
    service.go_on.clear()
    with serving(service, place):
        environ = {"PATH": os.environ["PATH"], "ARENA_TOOLS": str(place / "tools")}
        waits = subprocess.Popen([str(place / "work" / "evaluate")], env=environ, stdout=subprocess.PIPE)
        assert service.busy.wait(PATIENCE_S)
        time.sleep(0.3)
        assert waits.poll() is None
        service.go_on.set()
        out, _ = waits.communicate(timeout=PATIENCE_S)
    assert waits.returncode == 0 and out.startswith(b"judged ")


def test_the_largest_kernel_fits_into_a_request(place: Path) -> None:
    (place / "work" / "kernel.hip").write_text("\n" * evaluate.MAX_KERNEL_BYTES, encoding="utf-8")
    service = FakeService(lambda kernel: feedback("passed", str(len(kernel))))
    with serving(service, place):
        assert call(place).stdout == f"{evaluate.MAX_KERNEL_BYTES}\n"


def test_the_client_needs_nothing_but_an_old_python() -> None:
    """What the box offers is a python3 of at least 3.9, and no package."""
    source = CLIENT.read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 9))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= set(sys.stdlib_module_names)
