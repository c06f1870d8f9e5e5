"""Ask `arena serve` from a container of Harbor: evaluations for the agent, the verdict for the verifier.

A file of its own, copied into both containers: standard library only, Python 3.9 and later. $ARENA_URL says where the
judge is; $ARENA_TOKEN is the agent's token in one container and the full one in the other.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

PATIENCE_S = 600.0
"""for a judge that is not there yet, is busy or has just failed"""
_ANSWER_S = 3600.0
_PAUSE_S = 2.0
_AGAIN = (429, 503)
_TOO_LARGE = 413
_EPISODE = Path(".judge") / "episode"
USAGE = "judge.py ready | evaluate TASK KERNEL [OPTION …] | verify TASK KERNEL FOLDER"


class Unanswered(Exception):
    """The judge gave no answer, which says nothing about the kernel."""


def main(arguments: list[str]) -> int:
    """Run one command; return its exit code."""
    if arguments[:1] == ["evaluate"] and len(arguments) >= 3:
        return run_evaluate(arguments[1], Path(arguments[2]), arguments[3:])
    try:
        if arguments == ["ready"]:
            _done(ask("GET", "/status", patience_s=0.0))
        elif arguments[:1] == ["verify"] and len(arguments) == 4:
            verify(arguments[1], Path(arguments[2]), Path(arguments[3]))
        else:
            sys.stderr.write(f"usage: {USAGE}\n")
            return 2
    except Unanswered as problem:
        sys.stderr.write(f"no verdict: {problem}\n")
        return 3
    return 0


def run_evaluate(task: str, kernel: Path, options: list[str]) -> int:
    """Run `./evaluate` in the episode of this container, which the first call begins."""
    import evaluate  # type: ignore[import-not-found] # the file beside this one

    def send(text: str, profile: bool) -> bytes:
        try:
            path = f"/episodes/{_own_episode(kernel.parent, task)}/evaluate"
            _, answer = ask("POST", path, {"kernel": text, "profile": profile})
        except Unanswered as problem:
            raise evaluate.NoAnswer(str(problem)) from None
        return json.dumps(answer).encode()

    os.environ["ARENA_KERNEL"] = str(kernel)
    return int(evaluate.main(options, send))


def verify(task: str, kernel: Path, folder: Path) -> None:
    """Write the verdict on a kernel to `verdict.json`, then the bounded reward to `reward.json`, its only key.

    The verdict ends the episode of the agent where the judge knows it, so that one record has the whole session.
    """
    path = f"/episodes/{_episode_of(task, kernel.parent)}/finish"
    try:
        content = {"kernel": kernel.read_bytes().decode("utf-8", "replace")}
    except OSError:
        content = {}  # the best kernel that was evaluated counts
    status, verdict = ask("POST", path, content)
    if status == _TOO_LARGE:
        status, verdict = ask("POST", path, {"kernel": "the kernel file is too large"})  # which does not compile
    _done((status, verdict))
    _write(folder / "verdict.json", verdict)
    _write(folder / "reward.json", {"reward": verdict["bounded_reward"]})
    sys.stdout.write(f"{verdict['text']}; reward {verdict['bounded_reward']:.4g}\n")


def ask(method: str, path: str, content: object = None, patience_s: float = PATIENCE_S) -> tuple[int, dict[str, Any]]:
    """Send one request; return status and answer, an object. Raises `Unanswered`."""
    deadline = time.monotonic() + patience_s
    while True:
        pause_s = _PAUSE_S
        try:
            return 200, _object(_send(method, path, content))
        except urllib.error.HTTPError as problem:
            answer = _object(problem.read())
            if problem.code == 401:
                raise Unanswered(f"{_url()}: {answer.get('error')}") from None
            if problem.code not in _AGAIN or time.monotonic() >= deadline:
                return problem.code, answer
            after = problem.headers.get("Retry-After", "")
            pause_s = float(after) if after.isdecimal() else _PAUSE_S
        except OSError as problem:
            refused = isinstance(getattr(problem, "reason", None), ConnectionRefusedError)
            if not refused or time.monotonic() >= deadline:  # what was sent may have been judged
                raise Unanswered(f"{_url()}: {problem}") from None
        time.sleep(pause_s)


def _send(method: str, path: str, content: object) -> bytes:
    body = None if content is None else json.dumps(content).encode()
    headers = {"Authorization": f"Bearer {os.environ.get('ARENA_TOKEN', '')}", "Content-Type": "application/json"}
    request = urllib.request.Request(_url() + path, body, headers, method=method)
    with urllib.request.urlopen(request, timeout=_ANSWER_S) as answer:
        return bytes(answer.read())


def _url() -> str:
    url = os.environ.get("ARENA_URL", "")
    if not url.startswith(("http://", "https://")):
        raise Unanswered(f"ARENA_URL: expected the address that `arena serve` prints, not {url!r}")
    return url.rstrip("/")


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unanswered(f"an answer that is not of arena serve: {data[:200]!r}")
    return found


def _own_episode(folder: Path, task: str) -> str:
    """Return the episode of this container."""
    path = folder / _EPISODE
    if not path.is_file():
        path.write_text(_begin(task), encoding="ascii")
    return path.read_text(encoding="ascii").strip()


def _episode_of(task: str, folder: Path) -> str:
    """Return the agent's episode where it is one of this task that is unfinished, else a new one."""
    try:
        named = (folder / _EPISODE).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        named = ""
    if named.isalnum():
        status, found = ask("GET", f"/episodes/{named}/status")
        if status == 200 and found["task"] == task and not found["finished"]:
            return named
    return _begin(task)


def _begin(task: str) -> str:
    answer = _done(ask("POST", "/episodes", {"task": task, "agent": os.environ.get("ARENA_AGENT") or "harbor"}))
    return str(answer["episode"])


def _done(answered: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    """Return the answer; raises `Unanswered` where it is an error."""
    status, answer = answered
    if status != 200:
        raise Unanswered(f"{_url()}: {status}: {answer.get('error')}")
    return answer


def _write(path: Path, content: object) -> None:
    """Write JSON at once, so that nobody reads half of it."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content), encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
