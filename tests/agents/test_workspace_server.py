"""The socket behind `./evaluate`, with peers that do what they should and peers that do not."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from arena.agents import workspace_server
from arena.agents.base import Feedback
from arena.agents.workspace_server import MAX_CONNECTIONS, MAX_REQUEST_BYTES, WorkspaceServer
from arena.errors import InfrastructureError
from tests.agents.services import FakeService

PATIENCE_S = 10.0


@contextmanager
def connected(path: Path) -> Iterator[socket.socket]:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(PATIENCE_S)
    try:
        connection.connect(str(path))
        yield connection
    finally:
        connection.close()


def reply(connection: socket.socket) -> dict[str, Any]:
    data = b""
    while not data.endswith(b"\n"):
        chunk = connection.recv(65536)
        assert chunk, "hung up without an answer"
        data += chunk
    answer = json.loads(data)
    assert set(answer) == {"text", "result"}
    return dict(answer)


def request(kernel: str) -> bytes:
    return json.dumps({"kernel": kernel, "profile": False}).encode() + b"\n"


def said(path: Path, data: bytes) -> dict[str, Any]:
    """The answer to one request."""
    with connected(path) as connection:
        connection.sendall(data)
        return reply(connection)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def waiting(server: WorkspaceServer, count: int) -> Callable[[], bool]:
    return lambda: len(server._waiting) == count


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "service.sock"


def test_a_kernel_is_answered(path: Path) -> None:
    service = FakeService()
    with WorkspaceServer(service, path):
        answer = said(path, request("käse"))
        profiled = said(path, b'{"kernel": "k", "profile": true}\n')
    assert answer == {"text": "judged käse\n", "result": {"status": "passed", "detail": "judged käse"}}
    assert profiled["result"]["status"] == "passed"
    assert service.kernels == ["käse".encode(), b"k"] and service.profiled == [False, True]
    assert not path.exists()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"not json\n", "no JSON"),
        (b"[" * 100_000 + b"\n", "no JSON"),
        (b"\xff\xfe\n", "no JSON"),
        (b"[]\n", "must be"),
        (b'{"kernel": 1}\n', "must be a text"),
        (b'{"kernel": "k", "profile": 1}\n', "must be a text"),
        (b'{"kernel": "k", "heldout": true}\n', "must be"),
        (b"{}\n", "must be"),
        (b'{"kernel": "\\ud800"}\n', "no text"),
        (b"\n", "no JSON"),
    ],
)
def test_a_malformed_request_is_told_why(path: Path, data: bytes, why: str) -> None:
    service = FakeService()
    with WorkspaceServer(service, path):
        answer = said(path, data)
        assert said(path, request("after"))["result"]["status"] == "passed"
    assert why in answer["text"] and answer["result"] == {"status": None, "detail": answer["text"]}
    assert service.kernels == [b"after"]


def test_a_request_that_is_too_large_is_told_so(path: Path) -> None:
    service = FakeService()
    with WorkspaceServer(service, path), connected(path) as connection:
        with suppress(OSError):  # the server stops reading
            connection.sendall(b"x" * (MAX_REQUEST_BYTES + (1 << 20)))
        assert "larger than 4 MiB" in reply(connection)["text"]
    assert service.kernels == []


def test_a_request_that_does_not_come_is_given_up(path: Path) -> None:
    with WorkspaceServer(FakeService(), path, request_s=0.2) as server:
        with connected(path) as slow:
            slow.sendall(b'{"kernel": ')
            assert "in time" in reply(slow)["text"]
        with connected(path) as half:
            half.sendall(b'{"kernel": ')
            half.shutdown(socket.SHUT_WR)
            assert "has no end" in reply(half)["text"]
        until(lambda: not server._connections)


def test_a_trickle_does_not_extend_the_time(path: Path) -> None:
    with WorkspaceServer(FakeService(), path, request_s=0.3), connected(path) as slow:
        started = time.monotonic()
        try:
            while time.monotonic() < started + 3:
                slow.sendall(b" ")
                time.sleep(0.05)
        except OSError:
            pass  # given up
        assert time.monotonic() - started < 2


def test_requests_are_taken_in_order_of_arrival(path: Path) -> None:
    service = FakeService()
    service.go_on.clear()
    answers: dict[str, str] = {}

    def call(name: str) -> None:
        answers[name] = said(path, request(name))["text"]

    names = [f"kernel {index}" for index in range(12)]
    with WorkspaceServer(service, path) as server:
        callers = []
        for index, name in enumerate(names):
            callers.append(threading.Thread(target=call, args=(name,)))
            callers[-1].start()
            until(waiting(server, index + 1))
        service.go_on.set()
        for caller in callers:
            caller.join(PATIENCE_S)
    assert service.kernels == [name.encode() for name in names]
    assert answers == {name: f"judged {name}\n" for name in names}


def test_who_hangs_up_before_its_turn_is_passed_over(path: Path) -> None:
    service = FakeService()
    service.go_on.clear()
    with WorkspaceServer(service, path) as server, connected(path) as first:
        first.sendall(request("first"))
        assert service.busy.wait(PATIENCE_S)
        with connected(path) as gone:
            gone.sendall(request("gone"))
            until(waiting(server, 2))
        with connected(path) as patient:
            patient.sendall(request("patient"))
            patient.shutdown(socket.SHUT_WR)  # sends no more, and waits
            until(waiting(server, 3))
            service.go_on.set()
            assert reply(first)["text"] == "judged first\n"
            assert reply(patient)["text"] == "judged patient\n"
    assert service.kernels == [b"first", b"patient"]


def test_who_hangs_up_in_the_middle_disturbs_nobody(path: Path) -> None:
    service = FakeService()
    with WorkspaceServer(service, path) as server:
        for data in (b"", b'{"kern', b'{"kernel": "x"}'):
            with connected(path) as connection:
                connection.sendall(data)
        service.go_on.clear()
        with connected(path) as connection:
            connection.sendall(request("left during its evaluation"))
            assert service.busy.wait(PATIENCE_S)
        service.go_on.set()
        assert said(path, request("after"))["text"] == "judged after\n"
        until(lambda: not server._connections)
    assert service.kernels == [b"left during its evaluation", b"after"]


def test_too_many_connections_are_turned_away(path: Path) -> None:
    service = FakeService()
    with WorkspaceServer(service, path) as server:
        idle = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(MAX_CONNECTIONS)]
        for connection in idle:
            connection.connect(str(path))
        until(lambda: len(server._connections) == MAX_CONNECTIONS)
        with connected(path) as one_more:
            assert "waiting already" in reply(one_more)["text"]
        for connection in idle:
            connection.close()
        until(lambda: not server._connections)
        assert said(path, request("again"))["text"] == "judged again\n"


def test_closing_waits_for_no_evaluation(path: Path) -> None:
    service = FakeService()
    service.go_on.clear()
    with connected_to_closing(service, path) as (running, queued, idle, took):
        assert took < 1.5
        for connection in (running, queued, idle):
            assert answer_of_a_closed_server(connection)
    service.go_on.set()
    assert service.kernels == [b"running"]


@contextmanager
def connected_to_closing(
    service: FakeService, path: Path
) -> Iterator[tuple[socket.socket, socket.socket, socket.socket, float]]:
    """A server closed while one request is evaluated, one waits and one peer is silent; and how long that took."""
    server = WorkspaceServer(service, path)
    server.__enter__()
    with connected(path) as running, connected(path) as queued, connected(path) as idle:
        running.sendall(request("running"))
        assert service.busy.wait(PATIENCE_S)
        queued.sendall(request("queued"))
        until(waiting(server, 2))
        until(lambda: len(server._connections) == 3)
        started = time.monotonic()
        server.__exit__(None, None, None)
        yield running, queued, idle, time.monotonic() - started


def answer_of_a_closed_server(connection: socket.socket) -> bool:
    """Whether nothing is said, or that the judge is closed."""
    try:
        data = connection.recv(65536)
    except ConnectionError:
        return True
    return data == b"" or b"closed" in data


def test_a_desk_that_fails_gives_no_verdict(path: Path) -> None:
    def fail(kernel: bytes) -> Feedback:
        raise InfrastructureError("the judge's own words")

    with WorkspaceServer(FakeService(fail), path) as server:
        answer = said(path, request("k"))
        assert said(path, request("k"))["result"]["status"] is None
        assert isinstance(server.failure, InfrastructureError)
    assert "says nothing about the kernel" in answer["text"] and "own words" not in answer["text"]


def test_who_does_not_read_its_answer_holds_up_nobody(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace_server, "_ANSWER_S", 0.3)

    def at_length(kernel: bytes) -> Feedback:
        return Feedback("x" * (4 << 20 if kernel == b"long" else 1), b'{"status": "passed"}', None)

    with WorkspaceServer(FakeService(at_length), path) as server, connected(path) as deaf:
        deaf.sendall(request("long"))
        assert said(path, request("short"))["text"] == "x"
        until(lambda: not server._connections)


def test_a_path_that_no_socket_can_have_is_said(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="too long"):
        WorkspaceServer(FakeService(), tmp_path / ("x" * 120)).__enter__()
    with pytest.raises(InfrastructureError, match="cannot listen"):
        WorkspaceServer(FakeService(), tmp_path / "missing" / "d.sock").__enter__()
