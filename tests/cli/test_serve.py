"""`arena serve` with a real judge: an episode over HTTP, what Ctrl-C leaves behind, and going on from there."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from arena import Client
from arena.reports.pages import write_report
from arena.runs import records

_PROGRAM = "import typer; from arena.cli.serve import serve; typer.run(serve)"
_QUICK = ("rms_norm", "--platform", "cpu", "--max-work", "2e4", "--seeds", "1")


@contextmanager
def serving(*options: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """A server that has said where it is."""
    command = [sys.executable, "-c", _PROGRAM, *_QUICK, *options]
    pipe, environment = subprocess.PIPE, {**os.environ, **variables}
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def ask(server: dict[str, str], path: str, **body: object) -> Any:
    headers = {"Authorization": f"Bearer {server['token']}"}
    data = json.dumps(body).encode() if body else None
    with urllib.request.urlopen(urllib.request.Request(server["address"] + path, data, headers)) as answer:
        return json.load(answer)


def interrupted(process: subprocess.Popen[str], by: signal.Signals = signal.SIGINT) -> int:
    """The exit code. Judge, builder and their workers are gone by then, and nothing more was printed."""
    children = descendants(process.pid)
    assert len(children) >= 2
    process.send_signal(by)
    output, _ = process.communicate(timeout=60)
    assert output == ""
    deadline = time.monotonic() + 60
    while left := [child for child in children if alive(child)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    return process.returncode


def descendants(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except (FileNotFoundError, ProcessLookupError):  # a worker may end meanwhile: it is not waited for
        return []
    return [other for child in map(int, children) for other in (child, *descendants(child))]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_an_episode_then_ctrl_c_then_a_report(tmp_path: Path) -> None:
    chosen = {"ARENA_TOKEN": "t" * 32, "ARENA_AGENT_TOKEN": "a" * 32}
    with serving("--evaluations", "2", "--runs-dir", str(tmp_path), **chosen) as (process, server):
        assert (server["token"], server["agent_token"]) == ("t" * 32, "a" * 32)
        with pytest.raises(urllib.error.HTTPError, match="403"):
            ask({**server, "token": server["agent_token"]}, "/episodes/any/finish", kernel="")
        task = ask(server, "/tasks/rms_norm")
        assert task["emulated"] and task["evaluations"] == 2
        one = "/episodes/" + ask(server, "/episodes", task="rms_norm", seed=1)["episode"]
        broken = ask(server, one + "/evaluate", kernel="def rms_norm(:")
        assert (broken["reward"], broken["result"]["status"], broken["left"]) == (-5.0, "compile_error", 1)
        right = ask(server, one + "/evaluate", kernel=task["kernel"], profile=True)
        assert right["reward"] > -1 and right["done"]
        assert "no profiler" in right["result"]["profile"]["detail"]
        final = ask(server, one + "/finish", kernel=f"# as it was\n{task['kernel']}")
        assert (final["outcome"], final["stage_status"]) == ("not handed in", "passed"), "the baseline unchanged"
        assert final["heldout"]["cases"] >= 2
        assert interrupted(process) == 0
    (trial,) = records.read_run(tmp_path / "served").trials
    assert trial.status == "passed" and trial.session is not None and len(trial.session.evaluations) == 2
    page = write_report([records.read_run(tmp_path / "served")], tmp_path / "report").index
    assert "rms_norm" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_ctrl_c_in_the_middle_of_a_call_then_again(tmp_path: Path) -> None:
    path, folder = tmp_path / "arena.sock", str(tmp_path / "runs")
    with serving("--socket", str(path), "--runs-dir", folder) as (process, server):
        assert (server["address"], server["token"]) == (str(path), "")
        with Client(path) as client:
            one = client.begin("rms_norm").episode
        body = json.dumps({"kernel": "while True: pass"}).encode()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            head = f"POST /episodes/{one}/evaluate HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            time.sleep(2.0)
            assert interrupted(process, signal.SIGTERM) == 130
        assert not path.exists()
    with serving("--socket", str(path), "--runs-dir", folder) as (process, _), Client(path) as client:
        view = client.episode(one)
        assert (view.evaluations, view.left, view.finished) == (0, 50, False)
        assert client.finish(one, client.task("rms_norm").kernel).reward > -1
        assert interrupted(process) == 0


@pytest.mark.slow
def test_two_at_once_do_not_share_a_socket(tmp_path: Path) -> None:
    path = tmp_path / "arena.sock"
    taken = socket.socket(socket.AF_UNIX)
    with taken:
        taken.bind(str(path))
        command = [sys.executable, "-c", _PROGRAM, *_QUICK, "--socket", str(path), "--runs-dir", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode != 0 and "cannot listen at" in done.stderr and not done.stdout
