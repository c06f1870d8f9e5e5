"""The socket behind `./evaluate`, with peers that do what they should and peers that do not."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from arena.agents.base import Feedback
from arena.agents.workspace_server import MAX_WAITING, PATH, WorkspaceServer
from arena.errors import InfrastructureError
from arena.processes import http_server
from arena.processes.http_server import MAX_BODY_BYTES, MAX_SILENT
from tests.agents.services import FakeService

PATIENCE_S = 60.0


def connect(connection: socket.socket, path: Path) -> None:
    """Connect, again where the server has not accepted those before: a full backlog is EAGAIN on a Unix socket."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return connection.connect(str(path))
        except BlockingIOError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


@contextmanager
def connected(path: Path) -> Iterator[socket.socket]:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(PATIENCE_S)
    try:
        connect(connection, path)
        yield connection
    finally:
        connection.close()


def reply(connection: socket.socket) -> dict[str, Any]:
    """The answer's JSON; an error is told as an answer without a verdict, as `./evaluate` does."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    answer = json.loads(response.read())
    assert (set(answer), response.status) == ({"text", "result"}, 200) or set(answer) == {"error"}
    return dict(answer)


def posted(body: bytes) -> bytes:
    return f"POST {PATH} HTTP/1.1\r\nHost: arena\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def request(kernel: str) -> bytes:
    return posted(json.dumps({"kernel": kernel, "profile": False}).encode())


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
    return lambda: server.waiting == count


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "service.sock"


def test_a_kernel_is_answered(path: Path) -> None:
    service = FakeService()
    with WorkspaceServer(service, path):
        answer = said(path, request("käse"))
        profiled = said(path, posted(b'{"kernel": "k", "profile": true}'))
    assert answer == {"text": "judged käse\n", "result": {"status": "passed", "detail": "judged käse"}}
    assert profiled["result"]["status"] == "passed"
    assert service.kernels == ["käse".encode(), b"k"] and service.profiled == [False, True]
    assert not path.exists()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"not json", "malformed"),
        (b"[" * 100_000, "JSON"),
        (b"\xff\xfe", "malformed"),
        (b"[]", "Expected `object`"),
        (b'{"kernel": 1}', "Expected `str`"),
        (b'{"kernel": "k", "profile": 1}', "Expected `bool`"),
        (b'{"kernel": "k", "heldout": true}', "unknown field `heldout`"),
        (b"{}", "missing required field `kernel`"),
        (b'{"kernel": "\\ud800"}', "JSON"),
        (b"", "truncated"),
    ],
)
def test_a_malformed_request_is_told_why(path: Path, body: bytes, why: str) -> None:
    service = FakeService()
    with WorkspaceServer(service, path):
        answer = said(path, posted(body))
        assert said(path, request("after"))["result"]["status"] == "passed"
    assert why in answer["error"]
    assert service.kernels == [b"after"]


@pytest.mark.parametrize("data", [b"\r\n\r\n", b"\x00\xff\x16\x03\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"])
def test_another_request_reaches_nothing(path: Path, data: bytes) -> None:
    service = FakeService()
    with WorkspaceServer(service, path), connected(path) as connection:
        connection.sendall(data)
        assert connection.recv(4096).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 404 "))
        assert said(path, request("after"))["result"]["status"] == "passed"
    assert service.kernels == [b"after"]


def test_a_request_that_is_too_large_is_told_so(path: Path) -> None:
    service = FakeService()
    with WorkspaceServer(service, path), connected(path) as connection:
        with suppress(OSError):  # the server stops reading
            connection.sendall(posted(b"x" * (MAX_BODY_BYTES + (1 << 20))))
        assert "larger than 4 MiB" in reply(connection)["error"]
    assert service.kernels == []


def test_a_request_that_does_not_come_is_given_up(path: Path) -> None:
    with WorkspaceServer(FakeService(), path, request_s=0.2) as server:
        with connected(path) as slow:
            slow.sendall(request("k")[:-3])
            assert "within 0.2 s" in reply(slow)["error"]
        with connected(path) as silent:
            assert silent.recv(4096) == b""
        until(lambda: not server.waiting)


def test_a_trickle_does_not_extend_the_time(path: Path) -> None:
    with WorkspaceServer(FakeService(), path, request_s=0.3), connected(path) as slow:
        started = time.monotonic()
        slow.sendall(request("k" * 4000)[:-3000])  # at 20 bytes a second, more than PATIENCE_S
        try:
            while time.monotonic() < started + PATIENCE_S:
                slow.sendall(b" ")
                time.sleep(0.05)
        except OSError:
            pass  # given up
        assert time.monotonic() - started < PATIENCE_S


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
            until(waiting(server, 3))
            service.go_on.set()
            assert reply(first)["text"] == "judged first\n"
            assert reply(patient)["text"] == "judged patient\n"
    assert service.kernels == [b"first", b"patient"]


def test_who_hangs_up_in_the_middle_disturbs_nobody(path: Path) -> None:
    service = FakeService()
    with WorkspaceServer(service, path) as server:
        for data in (b"", b"POST /epi", request("x")[:-2]):
            with connected(path) as connection:
                connection.sendall(data)
        service.go_on.clear()
        with connected(path) as connection:
            connection.sendall(request("left during its evaluation"))
            assert service.busy.wait(PATIENCE_S)
        service.go_on.set()
        assert said(path, request("after"))["text"] == "judged after\n"
        until(lambda: not server.waiting)
    assert service.kernels == [b"left during its evaluation", b"after"]


def test_too_many_requests_are_turned_away(path: Path) -> None:
    service = FakeService()
    with WorkspaceServer(service, path) as server, ExitStack() as open_ones:
        for count in range(MAX_WAITING):
            idle = open_ones.enter_context(connected(path))
            idle.sendall(request("never whole")[:-1])
            until(waiting(server, count + 1))
        assert "32 calls of ./evaluate are waiting" in said(path, request("one more"))["error"]
        open_ones.close()
        until(waiting(server, 0))
        assert said(path, request("again"))["text"] == "judged again\n"


def test_peers_that_say_nothing_keep_nobody_out(path: Path) -> None:
    with WorkspaceServer(FakeService(), path), ExitStack() as open_ones:
        silent = [open_ones.enter_context(connected(path)) for _ in range(MAX_SILENT + 8)]
        assert said(path, request("k"))["text"] == "judged k\n"
        assert silent[0].recv(1) == b"", "the oldest made room"


def test_closing_waits_for_no_evaluation(path: Path) -> None:
    service = FakeService()
    service.go_on.clear()
    with connected_to_closing(service, path) as (running, queued, idle, took):
        assert not service.go_on.is_set() and took < PATIENCE_S
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
        assert isinstance(server.failure, InfrastructureError)
    assert "says nothing about the kernel" in answer["error"] and "own words" not in answer["error"]


def test_who_does_not_read_its_answer_holds_up_nobody(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_ANSWER_S", 0.3)

    def at_length(kernel: bytes) -> Feedback:
        return Feedback("x" * (4 << 20 if kernel == b"long" else 1), b'{"status": "passed"}', None)

    with WorkspaceServer(FakeService(at_length), path) as server, connected(path) as deaf:
        deaf.sendall(request("long"))
        assert said(path, request("short"))["text"] == "x"
        until(lambda: not server.waiting)


def test_a_path_that_no_socket_can_have_is_said(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="too long"):
        WorkspaceServer(FakeService(), tmp_path / ("x" * 120)).__enter__()
    with pytest.raises(InfrastructureError, match="cannot listen"):
        WorkspaceServer(FakeService(), tmp_path / "missing" / "d.sock").__enter__()
