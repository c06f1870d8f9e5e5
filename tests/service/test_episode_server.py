"""Episodes over HTTP: the protocol of docs/evaluate/serve.md, its client as printed there, and hostile peers."""

from __future__ import annotations

import http.client
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from arena.corpus.task_folder import load_task
from arena.errors import UsageError
from arena.judge.messages import Options
from arena.model.reward import REWARDS
from arena.model.session import KERNEL_LIMIT_BYTES, Limits
from arena.model.task import Task
from arena.service import episode_server
from arena.service.connections import MAX_CONNECTIONS, MAX_STRANGERS, Bounded
from arena.service.episode import Episodes
from arena.service.episode_server import MAX_BODY_BYTES, EpisodeServer
from arena.service.episode_view import Final, Step, TaskView
from arena.service.judge_pool import JudgePool
from tests.corpus.folders import write_task
from tests.fakes import Timing

DOCS = (Path(__file__).parents[2] / "docs" / "evaluate" / "serve.md").read_text(encoding="utf-8")


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return load_task(write_task(tmp_path / "tasks"))


@contextmanager
def served(task: Task, path: Path | None = None, **limits: Any) -> Iterator[tuple[EpisodeServer, Timing]]:
    judge = Timing(speeds={"slow": 0.5, "fast": 2.0, "...": 1.0})
    server = EpisodeServer(Episodes(task, JudgePool([judge]), Options(), Limits(**limits)), path=path)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server, judge
    finally:
        server.stop()
        thread.join(10)
        server.close()


def port(server: EpisodeServer) -> int:
    return int(server.address.rsplit(":", 1)[1])


def ask(
    server: EpisodeServer, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port(server), timeout=20)
    try:
        given = {"Authorization": f"Bearer {server.token}"} if headers is None else headers
        connection.request(method, path, body, given)
        answer = connection.getresponse()
        assert answer.headers["Content-Type"] == "application/json"
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def posted(server: EpisodeServer, path: str, **content: object) -> tuple[int, Any]:
    return ask(server, "POST", path, json.dumps(content).encode())


def raw(server: EpisodeServer, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port(server)), timeout=20) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(4096), b""))


def test_an_episode(task: Task) -> None:
    with served(task, evaluations=2) as (server, judge):
        status, view = ask(server, "GET", "/task")
        assert (status, view["task"], view["evaluations"]) == (200, task.id, 2)
        assert posted(server, "/evaluate", kernel="slow")[1]["reward"] == -0.5
        status, step = posted(server, "/evaluate", kernel="fast", profile=True)
        assert (status, step["reward"], step["done"], step["left"]) == (200, 1.0, True, 0)
        assert step["result"]["speedup"] == 2.0 and step["text"].startswith("passed: 2x")
        assert [options.profile for options in judge.options] == [False, True]
        status, problem = posted(server, "/evaluate", kernel="fast")
        assert status == 409 and "only /finish is left" in problem["error"]
        status, final = ask(server, "POST", "/finish")
        assert (status, final["reward"], final["status"], final["done"]) == (200, 1.0, "passed", True)
        for path in ("/evaluate", "/finish"):
            assert posted(server, path, kernel="fast") == (409, {"error": "the episode is finished"})
        assert posted(server, "/reset")[0] == 409
        assert ask(server, "GET", "/task")[0] == 200


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic YTpi"}])
def test_nobody_without_the_token(task: Task, headers: dict[str, str]) -> None:
    with served(task) as (server, judge):
        for method, path in (("GET", "/task"), ("POST", "/evaluate"), ("POST", "/finish"), ("GET", "/")):
            status, answer = ask(server, method, path, b'{"kernel": "fast"}', headers)
            assert status == 401 and "token" in answer["error"] and server.token not in answer["error"]
        assert ask(server, "GET", f"/task?token={server.token}", None, headers)[0] == (200 if not headers else 401)
        assert not judge.options


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"null", 400),
        (b'{"kernel": 1}', 400),
        (b'{"kernel": "fast", "heldout": true}', 400),
        (b'{"kernel": "\\ud800"}', 400),
        (b'{"kernel": "\xff"}', 400),
        (b"[" * 200_000, 400),
        (b'{"kernel": "' + b"#" * (KERNEL_LIMIT_BYTES + 1) + b'"}', 413),
    ],
)
def test_bodies_that_are_not_expected(task: Task, body: bytes, status: int) -> None:
    with served(task) as (server, judge):
        found, answer = ask(server, "POST", "/evaluate", body)
        assert found == status and answer["error"]
        assert not judge.options
        assert posted(server, "/evaluate", kernel="fast")[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/evaluate", 405), ("POST", "/task", 405), ("GET", "/../heldout.yaml", 404), ("PUT", "/task", 501)],
)
def test_other_paths_and_methods(task: Task, method: str, path: str, status: int) -> None:
    with served(task) as (server, _):
        found, answer = ask(server, method, path)
        assert found == status and answer["error"]


@pytest.mark.parametrize(
    ("length", "status"), [(str(MAX_BODY_BYTES + 1), 413), ("9" * 400, 413), ("-1", 411), ("many", 411), (None, 411)]
)
def test_lengths(task: Task, length: str | None, status: int) -> None:
    with served(task) as (server, _):
        said = "" if length is None else f"Content-Length: {length}\r\n"
        head = f"POST /evaluate HTTP/1.1\r\nAuthorization: Bearer {server.token}\r\n{said}\r\n"
        assert raw(server, head.encode()).startswith(f"HTTP/1.0 {status} ".encode())


@pytest.mark.parametrize(
    "data", [b"\r\n", b"\x00\xff\x16\x03\r\n\r\n", b"GET\r\n\r\n", b"GET /" + b"a" * 70_000 + b"\r\n"]
)
def test_what_is_no_http(task: Task, data: bytes) -> None:
    with served(task) as (server, _):
        raw(server, data)
        assert ask(server, "GET", "/task")[0] == 200


def idle(server: EpisodeServer, count: int) -> list[socket.socket]:
    return [socket.create_connection(("127.0.0.1", port(server)), timeout=10) for _ in range(count)]


def test_peers_that_say_nothing_keep_nobody_out(task: Task) -> None:
    """Twice as many as there are places, with nothing to show: who has the token is answered at once."""
    with served(task) as (server, _):
        strangers = idle(server, 64)
        started = time.monotonic()
        assert [ask(server, "GET", "/task")[0] for _ in range(5)] == [200] * 5
        assert time.monotonic() - started < 1
        assert strangers[0].recv(4096).startswith(b"HTTP/1.0 503"), "the oldest made room, and was told"
        assert threading.active_count() < 4 * MAX_STRANGERS
        for connection in strangers:
            connection.close()


def test_peers_that_say_nothing_lose_their_place(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(episode_server, "_HEAD_S", 0.2)
    with served(task) as (server, _):
        dripping = idle(server, 8)
        for connection in dripping:
            connection.sendall(b"GET /task HTTP/1.1\r\nAuthorization: Bear")
        started = time.monotonic()
        for connection in dripping:
            while connection.recv(4096):
                pass
            connection.close()
        assert time.monotonic() - started < 2
        assert ask(server, "GET", "/task")[0] == 200


def test_as_many_requests_as_there_are_places(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who have shown the token, and send the rest of their requests later."""
    places, admit = threading.Semaphore(0), Bounded.admit

    def counted(self: Bounded, connection: socket.socket) -> bool:
        if found := admit(self, connection):
            places.release()
        return found

    monkeypatch.setattr(Bounded, "admit", counted)
    with served(task) as (server, _), ExitStack() as open_ones:
        head = f"POST /evaluate HTTP/1.1\r\nAuthorization: Bearer {server.token}\r\nContent-Length: 9\r\n\r\n"
        for _ in range(MAX_CONNECTIONS):
            (connection,) = idle(server, 1)
            open_ones.callback(connection.close)
            connection.sendall(head.encode())
            assert places.acquire(timeout=30)
        status, answer = ask(server, "GET", "/task")
        assert status == 503 and "32 requests are being answered" in answer["error"]
        open_ones.close()
        deadline = time.monotonic() + 30
        while ask(server, "GET", "/task")[0] == 503 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert ask(server, "GET", "/task")[0] == 200


def test_a_body_that_drips_is_cut_off(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(episode_server, "_REQUEST_S", 0.5)
    with served(task) as (server, judge):
        head = f"POST /evaluate HTTP/1.1\r\nAuthorization: Bearer {server.token}\r\nContent-Length: 1000\r\n\r\n{{"
        assert b" 400 " in raw(server, head.encode()).splitlines()[0]
        assert not judge.options


def test_a_harness_that_fails_is_503_and_a_fault_500(task: Task, caplog: pytest.LogCaptureFixture) -> None:
    with served(task) as (server, judge):
        judge.failing.add("scale")
        status, answer = posted(server, "/evaluate", kernel="fast")
        assert status == 503 and "the device fell over" in answer["error"]
        judge.failing.clear()
        status, answer = posted(server, "/evaluate", kernel="unknown-to-the-fake")
        assert status == 500 and "KeyError" in caplog.text and "KeyError" not in answer["error"]
        assert posted(server, "/evaluate", kernel="fast")[0] == 200


def test_a_unix_socket_is_for_its_owner(task: Task, tmp_path: Path) -> None:
    path = tmp_path / "desk.sock"
    with served(task, path) as (server, _):
        assert server.address == str(path) and path.stat().st_mode & 0o777 == 0o600
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.sendall(b"GET /task HTTP/1.0\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert json.loads(answer.split(b"\r\n\r\n", 1)[1])["task"] == task.id
    assert not path.exists()


def test_a_place_that_is_taken(task: Task, tmp_path: Path) -> None:
    episodes = Episodes(task, JudgePool([Timing()]), Options(), Limits())
    (tmp_path / "there").write_text("not ours", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot listen at"):
        EpisodeServer(episodes, path=tmp_path / "there")
    assert (tmp_path / "there").read_text(encoding="utf-8") == "not ours"


def test_the_client_of_the_docs(task: Task, tmp_path: Path) -> None:
    found = re.search(r"<!-- client -->\n```python\n(.*?)```", DOCS, re.DOTALL)
    assert found and len([line for line in found[1].splitlines() if line]) <= 25
    client = tmp_path / "client.py"
    client.write_text(found[1], encoding="utf-8")
    with served(task, evaluations=2) as (server, judge):
        command = [sys.executable, str(client), server.address, server.token]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert [line.split()[:2] for line in lines[:2]] == [["0.0", "1"], ["0.0", "0"]]
        assert lines[2].startswith("0.0 passed: ")
        assert len(judge.options) == 3
        again = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert again.returncode == 1 and again.stderr == "409: the episode is finished\n"


@pytest.mark.parametrize("answer", [TaskView, Step, Final])
def test_the_docs_name_every_field(answer: type[TaskView] | type[Step] | type[Final]) -> None:
    for name in answer.__struct_fields__:
        assert re.search(rf"^\|[^|]*`{name}`[^|]*\|", DOCS, re.MULTILINE), (
            f"docs/evaluate/serve.md does not explain `{name}`"
        )


def test_the_docs_list_every_level_of_the_reward() -> None:
    listed = {int(level) for level in re.findall(r"^\| −(\d) \|", DOCS, re.MULTILINE)}
    assert listed == {int(-level) for level in REWARDS.values()}
