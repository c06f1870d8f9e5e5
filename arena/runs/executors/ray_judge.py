"""The actor on a Ray node that owns one judge process. Bytes in, bytes out: nothing of arena's is pickled."""

from __future__ import annotations

import math
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue

import msgspec

from arena.errors import ArenaError, JudgeUnavailable, what_was_raised
from arena.judge.compile.builder_client import BuilderClient
from arena.judge.process.client import JudgeClient
from arena.processes.scratch import sweep
from arena.runs.service.judge_pool import STALLED_S, Evaluator, KernelBuilder
from arena.runs.service.remote import RemoteJudge, Unfit
from arena.task.corpus.corpora import Corpora, open_corpora
from arena.task.corpus.task_folder import HIDE

TASKS_VARIABLE = "ARENA_TASKS_DIR"
NICENESS = "RAY_worker_niceness"
PROGRESS, ANSWER = b"p", b"a"
"""first byte of what the actor says"""
_CREDENTIALS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_THREADS = "OMP_NUM_THREADS"


class JudgeActor:
    """One judge process for one platform, on the device that Ray shows. It starts when it is first asked.

    Ray calls its methods in several threads. On a GPU it has a builder, too, which compiles on the node's processors.
    """

    silent_s = STALLED_S
    """how long a judge may say nothing"""
    step_s = 1.0
    """between two steps that are passed on: each costs the runner almost a millisecond of processor time"""

    def __init__(self, platform: str, folders: list[str]) -> None:
        self.platform, self._folders = platform, folders
        self._client: Evaluator | None = None
        self._builder: KernelBuilder | None = None
        self._one_starts = threading.Lock()
        self.judge: RemoteJudge | None = None

    def where(self) -> bytes:
        """Return the name of this machine."""
        return socket.gethostname().encode()

    def ask(self, request: bytes) -> Iterator[bytes]:
        """Answer one request: steps, of which those that follow within `step_s` are dropped, then the answer."""
        try:
            judge = self._started()
        except ArenaError as problem:
            yield _unfit(str(problem))
            return
        messages: SimpleQueue[bytes] = SimpleQueue()

        def answer() -> None:
            try:
                messages.put(ANSWER + judge.answer(request, lambda step: messages.put(PROGRESS + step)))
            except BaseException:  # nobody else sees it, and whoever asked would wait for good
                messages.put(_unfit(what_was_raised()))

        threading.Thread(target=answer, daemon=True).start()
        one, said_s = PROGRESS, -math.inf
        while not one.startswith(ANSWER):
            try:
                one = messages.get(timeout=self.silent_s)
            except Empty:
                one = _unfit(f"waited for the judge, which said nothing for {self.silent_s:.0f} s")
            if one.startswith(PROGRESS):
                if time.monotonic() < said_s + self.step_s:
                    continue
                said_s = time.monotonic()
            yield one

    def close(self) -> bytes:
        """End the judge, which takes its workers with it."""
        if isinstance(self._client, JudgeClient):
            self._client.close()
        if isinstance(self._builder, BuilderClient):
            self._builder.close()
        return b""

    def start_judge(self) -> Evaluator:
        """Start the process that judges."""
        return JudgeClient(self.platform)

    def start_builder(self) -> KernelBuilder | None:
        """Start the process that compiles ahead of a GPU; None on the CPU platform."""
        return None if self.platform == "cpu" else BuilderClient()

    def _started(self) -> RemoteJudge:
        with self._one_starts:
            if self.judge is None:
                sweep()
                _require_priority()
                with suppress(OSError):  # of all processes, Ray would have the judge killed first for memory
                    Path("/proc/self/oom_score_adj").write_text("0", encoding="ascii")
                corpora = _corpora(self._folders)
                with _own_environment():
                    self._client, self._builder = self.start_judge(), self.start_builder()
                self.judge = RemoteJudge(self._client, corpora, self._builder)
            return self.judge


def _unfit(reason: str) -> bytes:
    return ANSWER + msgspec.json.encode(Unfit(reason))


def _require_priority() -> None:
    """Take back the low priority that Ray gives its workers: other work of the node would disturb measurements.

    Raises `JudgeUnavailable` where an ordinary user would need Ray's setting for it.
    """
    if os.getpriority(os.PRIO_PROCESS, 0) <= 0:
        return
    try:
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    except PermissionError:
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        raise JudgeUnavailable(f"judges would run at nice {nice}: {NICENESS}=0 must be set where Ray starts") from None


def _corpora(folders: list[str]) -> Corpora:
    """The node's own folders of tasks; else those of the run under the same paths; else the shipped ones."""
    own = os.environ.get(TASKS_VARIABLE, "")
    return open_corpora([Path(folder) for folder in (own.split(os.pathsep) if own else folders)])


@contextmanager
def _own_environment() -> Iterator[None]:
    """Start a process without the cluster's credentials, and without the one thread that Ray sets for each call.

    Its candidates do not see Ray's folder: who reaches the socket in it needs no token.
    """
    given = Path("/proc/self/environ").read_bytes().split(b"\0")
    hidden = [*_CREDENTIALS, *([] if any(one.startswith(f"{_THREADS}=".encode()) for one in given) else [_THREADS])]
    kept = {name: os.environ.pop(name) for name in hidden if name in os.environ}
    try:
        with ray_hidden():
            yield
    finally:
        os.environ.update(kept)


@contextmanager
def ray_hidden() -> Iterator[None]:
    """Have candidates and agents that start meanwhile not see Ray's folder."""
    before = os.environ.get(HIDE, "")
    os.environ[HIDE] = os.pathsep.join(filter(None, (before, _ray_folder())))
    try:
        yield
    finally:
        os.environ[HIDE] = before


def _ray_folder() -> str:
    """Return the folder of this node's sockets and logs; empty where this process is not connected to Ray."""
    ray = sys.modules.get("ray")
    node = None if ray is None else ray._private.worker._global_node
    return "" if node is None else str(node.get_temp_dir_path())
