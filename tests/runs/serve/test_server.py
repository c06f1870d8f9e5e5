"""Episodes over HTTP: the protocol of docs/evaluate/serve.md, its client as printed there, and hostile peers."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena import AsyncClient, Client
from arena.errors import NotServed, UsageError
from arena.processes import http_server
from arena.processes.http_server import MAX_BODY_BYTES, MAX_KERNEL_BYTES, MAX_SILENT, EvaluationServer
from arena.results.reward import REWARDS
from arena.results.session import KERNEL_LIMIT_BYTES
from arena.runs.serve.clients import local
from arena.runs.serve.routes import EpisodeServer, Routes, description
from arena.runs.serve.views import EpisodeView, Final, ServedTask, ServerView, Step, TaskView
from tests.runs.serve.serving import TASK, Judge, served

DOCS = (Path(__file__).parents[3] / "docs" / "evaluate" / "serve.md").read_text(encoding="utf-8")
MEASURES = (Path(__file__).parents[3] / "docs" / "evaluate" / "measures.md").read_text(encoding="utf-8")


@contextmanager
def listening(
    root: Path, judge: Judge | None = None, path: Path | None = None, **settings: Any
) -> Iterator[tuple[EpisodeServer, Judge]]:
    with (
        served(root, judge, **settings) as (episodes, used),
        EpisodeServer(episodes, path=path) as server,
    ):
        yield server, used


def port(server: EpisodeServer) -> int:
    return int(server.address.rsplit(":", 1)[1])


def ask(
    server: EpisodeServer, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port(server), timeout=60)
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


def begun(server: EpisodeServer) -> str:
    """The path of a new episode."""
    return f"/episodes/{posted(server, '/episodes', task='scale')[1]['episode']}"


def raw(server: EpisodeServer, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port(server)), timeout=60) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(4096), b""))


def test_an_episode_by_the_client(tmp_path: Path) -> None:
    with listening(tmp_path, evaluations=2) as (server, _), Client(server.address, server.token) as client:
        assert [line.task for line in client.tasks("train")] == [TASK, TASK + "_too"] and not client.tasks("evaluation")
        view = client.task("scale")
        assert (view.task, view.evaluations) == (TASK, 2)
        one = client.begin("scale", seed=7, agent="policy").episode
        assert client.evaluate(one, "slow").reward == -0.5
        step = client.evaluate(one, "fast", profile=True)
        assert (step.reward, step.done, step.left) == (1.0, True, 0)
        assert msgspec.json.decode(step.result)["speedup"] == 2.0 and step.text.startswith("passed: 2x")
        with pytest.raises(NotServed, match="409: all 2 evaluations are used up: only /finish is left"):
            client.evaluate(one, "fast")
        final = client.finish(one)
        assert (final.reward, final.outcome, final.stage_status, final.done) == (1.0, "seen only", "passed", True)
        for call in (client.finish, client.evaluate):
            with pytest.raises(NotServed, match="the episode is finished") as problem:
                call(one, "fast")
            assert problem.value.status == 409
        view = client.episode(one)
        assert (view.finished, view.best_speedup, view.seed, view.agent) == (True, 2.0, 7, "policy")
        status = client.status()
        assert (status.open, status.finished, status.waiting) == (0, 1, 0) and status.evaluations_an_hour > 0


def test_many_episodes_at_once_and_a_batch(tmp_path: Path) -> None:
    async def one(client: AsyncClient, seed: int) -> float:
        episode = (await client.begin("scale", seed=seed)).episode
        await client.evaluate(episode, "slow")
        await client.evaluate(episode, "fast")
        return float((await client.finish(episode)).reward)

    async def all_of_them(server: EpisodeServer) -> tuple[list[float], list[Any]]:
        async with AsyncClient(server.address, server.token) as client:
            rewards = await asyncio.gather(*(one(client, seed) for seed in range(24)))
            names = [(await client.begin("scale_too", seed=seed)).episode for seed in range(2)]
            return rewards, await client.batch([(names[0], "fast"), ("no", "fast"), (names[1], "WRONG")])

    with listening(tmp_path, capacity=64) as (server, _):
        rewards, answers = asyncio.run(all_of_them(server))
    assert rewards == [1.0] * 24
    assert [answer.status for answer in answers] == [200, 404, 200]
    assert [answers[0].answer["reward"], answers[2].answer["reward"]] == [1.0, -2.0]


def test_a_busy_server_says_when_to_come_again(tmp_path: Path) -> None:
    go_on, held = threading.Event(), threading.Event()

    def hold_up() -> None:
        held.set()
        assert go_on.wait(20)

    with listening(tmp_path, Judge(hold_up), capacity=1) as (server, _):
        path = begun(server)
        thread = threading.Thread(target=posted, args=(server, path + "/evaluate"), kwargs={"kernel": "fast"})
        thread.start()
        assert held.wait(20)
        with Client(server.address, server.token) as client, pytest.raises(NotServed, match="429") as busy:
            client.evaluate(client.begin("scale").episode, "fast")
        assert busy.value.retry_after_s is not None and busy.value.retry_after_s >= 1
        go_on.set()
        thread.join(20)


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic YTpi"}])
def test_nobody_without_the_token(tmp_path: Path, headers: dict[str, str]) -> None:
    with listening(tmp_path) as (server, judge):
        one = begun(server)
        for method, path in (("GET", "/tasks"), ("POST", "/episodes"), ("POST", one + "/finish"), ("GET", "/status")):
            status, answer = ask(server, method, path, b'{"kernel": "fast"}', headers)
            assert status == 401 and "token" in answer["error"] and server.token not in answer["error"]
        assert ask(server, "GET", f"/tasks?token={server.token}", None, headers)[0] == (200 if not headers else 401)
        assert not judge.options


def test_an_agent_gets_everything_but_a_verdict(tmp_path: Path) -> None:
    with listening(tmp_path, clients=[local(8, agent_episodes=1)]) as (server, judge):
        assert server.agent_token != server.token
        agent = {"Authorization": f"Bearer {server.agent_token}"}
        one = "/episodes/" + ask(server, "POST", "/episodes", b'{"task": "scale"}', agent)[1]["episode"]
        assert ask(server, "POST", one + "/evaluate", b'{"kernel": "fast"}', agent)[1]["reward"] == 1.0
        assert ask(server, "GET", one + "/status", None, agent)[1]["evaluations"] == 1
        status, answer = ask(server, "POST", one + "/finish", b"", agent)
        assert status == 403 and "`agent_token` does not open this" in answer["error"]
        assert not any(options.heldout for options in judge.options)
        assert posted(server, one + "/finish")[0] == 200 and judge.options[-1].heldout


def test_chosen_tokens_are_kept(tmp_path: Path) -> None:
    with listening(tmp_path, clients=[local(8, "a" * 32, "b" * 32)]) as (server, _):
        assert (server.token, server.agent_token) == ("a" * 32, "b" * 32)
        assert ask(server, "GET", "/status")[0] == 200


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
        (b'"' + b"#" * MAX_BODY_BYTES + b'"', 413),
    ],
)
def test_bodies_that_are_not_expected(tmp_path: Path, body: bytes, status: int) -> None:
    with listening(tmp_path) as (server, judge):
        one = begun(server)
        found, answer = ask(server, "POST", one + "/evaluate", body)
        assert found == status and answer["error"]
        assert not judge.options
        assert posted(server, one + "/evaluate", kernel="fast")[0] == 200


@pytest.mark.parametrize(
    "body",
    [{"task": "scale", "agent": "../x"}, {"task": "scale", "agent": ""}, {"task": "scale", "seed": -1},
     {"task": "scale", "effort": "none"}, {"task": "scale", "inputs": 1}, {"seed": 1}],
)  # fmt: skip
def test_episodes_that_cannot_begin(tmp_path: Path, body: dict[str, object]) -> None:
    with listening(tmp_path) as (server, _):
        status, answer = posted(server, "/episodes", **body)
        assert status == 400 and answer["error"]
        assert ask(server, "GET", "/status")[1]["open"] == 0


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/episodes", 405),
        ("POST", "/tasks", 405),
        ("GET", "/heldout.yaml", 404),
        ("GET", "/tasks/../heldout.yaml", 404),
        ("GET", "/tasks/%2e%2e/run.json", 404),
        ("GET", "/tasks?split=private", 400),
        ("GET", "/episodes/..%2frun/status", 404),
        ("PUT", "/tasks", 405),
    ],
)
def test_other_paths_and_methods(tmp_path: Path, method: str, path: str, status: int) -> None:
    with listening(tmp_path) as (server, _):
        found, answer = ask(server, method, path)
        assert found == status and answer["error"]


@pytest.mark.parametrize(
    "data", [b"\r\n", b"\x00\xff\x16\x03\r\n\r\n", b"GET\r\n\r\n", b"GET /" + b"a" * 70_000 + b"\r\n"]
)
def test_what_is_no_http(tmp_path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_S", 0.2)
    with listening(tmp_path) as (server, _):
        raw(server, data)
        assert ask(server, "GET", "/tasks")[0] == 200


def idle(server: EpisodeServer, count: int) -> list[socket.socket]:
    return [socket.create_connection(("127.0.0.1", port(server)), timeout=60) for _ in range(count)]


def test_peers_that_say_nothing_keep_nobody_out(tmp_path: Path) -> None:
    with listening(tmp_path) as (server, _):
        silent = idle(server, MAX_SILENT + 16)
        assert [ask(server, "GET", "/tasks")[0] for _ in range(5)] == [200] * 5
        with suppress(ConnectionResetError):
            assert silent[0].recv(1) == b"", "the oldest made room"
        for connection in silent:
            connection.close()


def test_heads_and_bodies_that_drip_are_cut_off(tmp_path: Path) -> None:
    with served(tmp_path) as (episodes, judge), EpisodeServer(episodes, head_s=0.2) as server:
        dripping = idle(server, 8)
        for connection in dripping:
            connection.sendall(b"GET /tasks HTTP/1.1\r\nAuthorization: Bear")
        started = time.monotonic()
        for connection in dripping:
            try:
                while connection.recv(4096):
                    pass
            except ConnectionError:
                pass
            connection.close()
        assert time.monotonic() - started < 60
        assert ask(server, "GET", "/tasks")[0] == 200 and not judge.options


def test_a_harness_that_fails_is_503_and_a_fault_500(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with listening(tmp_path) as (server, judge):
        one = begun(server)
        judge.failing.add("scale")
        status, answer = posted(server, one + "/evaluate", kernel="fast")
        assert status == 503 and "the device fell over" in answer["error"]
        judge.failing.clear()
        status, answer = posted(server, one + "/evaluate", kernel="unknown-to-the-fake")
        assert status == 500 and "KeyError" in caplog.text and "KeyError" not in answer["error"]
        assert posted(server, one + "/evaluate", kernel="fast")[0] == 200


def test_a_unix_socket_is_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "arena.sock"
    with listening(tmp_path, path=path) as (server, _), Client(path) as client:
        assert server.address == str(path) and path.stat().st_mode & 0o777 == 0o600
        assert client.task("scale").task == TASK
    assert not path.exists()


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_a_socket_has_its_mode_from_the_first_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int
) -> None:
    """The umask is left alone: it is the process's, and folders that other threads make meanwhile had no way in."""
    before, seen, chmod = os.umask(umask), [], Path.chmod

    def noted(path: Path, mode: int) -> None:
        seen.append(path.stat().st_mode & 0o777)
        chmod(path, mode)

    try:
        with monkeypatch.context() as patched:
            patched.setattr(Path, "chmod", noted)
            patched.setattr(os, "umask", lambda _: pytest.fail("the umask was changed"))
            path = tmp_path / "arena.sock"
            with EvaluationServer({}, path=path, mode=0o666):
                assert path.stat().st_mode & 0o777 == 0o666
    finally:
        os.umask(before)
    assert seen == [0o666 & ~umask]


def test_a_place_that_is_taken(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("not ours", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot listen at"), EvaluationServer({}, path=tmp_path / "there"):
        pass
    assert (tmp_path / "there").read_text(encoding="utf-8") == "not ours"


def test_the_client_of_the_docs(tmp_path: Path) -> None:
    found = re.search(r"<!-- client -->\n```python\n(.*?)```", DOCS, re.DOTALL)
    assert found and len([line for line in found[1].splitlines() if line]) <= 25
    program = tmp_path / "client.py"
    program.write_text(found[1].replace("rms_norm", "scale"), encoding="utf-8")
    with listening(tmp_path, evaluations=2) as (server, judge):
        command = [sys.executable, str(program), server.address, server.token]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert [line.split()[:2] for line in lines[:2]] == [["0.0", "1"], ["0.0", "0"]]
        assert lines[2].startswith("0.0 seen only: ")
        assert len(judge.options) == 3


def test_the_description_names_every_route_and_resolves(tmp_path: Path) -> None:
    with listening(tmp_path) as (server, _):
        told = ask(server, "GET", "/openapi.json")[1]
        table = Routes(None).table()  # type: ignore[arg-type]
    described = {(method.upper(), path) for path, methods in told["paths"].items() for method in methods}
    assert described == {(method, path.replace(":path", "")) for method, path in table} - {("GET", "/openapi.json")}
    names = re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(told))
    assert {*names} <= {*told["components"]["schemas"]} and len({*names}) >= 10
    assert description()["openapi"].startswith("3.1")


@pytest.mark.parametrize("answer", [TaskView, Step, Final, EpisodeView, ServerView, ServedTask])
def test_the_docs_name_every_field(answer: type[msgspec.Struct]) -> None:
    for name in answer.__struct_fields__:
        assert re.search(rf"^\|[^|]*`{name}`[^|]*\|", DOCS, re.MULTILINE), (
            f"docs/evaluate/serve.md does not explain `{name}`"
        )


def test_the_docs_list_every_level_of_the_reward() -> None:
    listed = {int(level) for level in re.findall(r"^\| −(\d) \|", MEASURES, re.MULTILINE)}
    assert listed == {int(-level) for level in REWARDS.values()}


def test_one_limit_on_kernels() -> None:
    assert MAX_KERNEL_BYTES == KERNEL_LIMIT_BYTES
