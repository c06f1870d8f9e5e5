"""The one helper that runs child processes: own session, hard timeout, capped log, partial output kept."""

from __future__ import annotations

import os
import resource
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LOG_LIMIT_BYTES = 256 * 1024
_READ_BYTES = 65536
_ENDING_S = 2.0


@dataclass(frozen=True)
class Finished:
    """The result of a child process: exit code (negative: signal), its merged output, and the seconds it took."""

    returncode: int
    output: str
    seconds: float
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """Return whether it ended by itself with exit code 0."""
        return self.returncode == 0 and not self.timed_out


def run(
    command: Sequence[str | Path],
    *,
    timeout_s: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    log_limit_bytes: int = LOG_LIMIT_BYTES,
    memory_bytes: int | None = None,
    file_bytes: int | None = None,
    pass_fds: Sequence[int] = (),
) -> Finished:
    """Run `command` in its own session and return its exit code and merged stdout and stderr.

    At `timeout_s` the whole process group is killed and what was printed so far is kept. Output beyond
    `log_limit_bytes` is read and dropped, so that a chatty child neither blocks nor fills memory. `memory_bytes` limits
    the address space of the child and of each of its descendants: for programs that do not reserve more than they use.
    `file_bytes` limits each file that they write. It inherits the descriptors `pass_fds`. Raises `FileNotFoundError`
    where the program does not exist.
    """
    started = time.monotonic()
    # A file rather than a pipe: a child that reads nothing, or prints before it reads, cannot block us.
    with tempfile.TemporaryFile() as source:
        source.write(stdin)
        source.seek(0)
        child = subprocess.Popen(
            _limited(command, memory_bytes, file_bytes),
            stdin=source if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=None if env is None else dict(env),
            start_new_session=True,
            pass_fds=tuple(pass_fds),
        )
    try:
        output, timed_out = _drain(child, started + timeout_s, log_limit_bytes)
    finally:
        kill_group(child.pid)
        child.wait()
        if child.stdout is not None:
            child.stdout.close()
    return Finished(child.returncode, output, time.monotonic() - started, timed_out)


def _limited(command: Sequence[str | Path], memory_bytes: int | None, file_bytes: int | None) -> list[str]:
    """The command behind limits on address space and files, which are in force before the program begins and forks."""
    limits = [] if memory_bytes is None else [f"ulimit -v {_within(resource.RLIMIT_AS, memory_bytes) >> 10}"]
    limits += [] if file_bytes is None else [f"ulimit -f {_within(resource.RLIMIT_FSIZE, file_bytes) >> 9}"]
    if not limits:
        return list(map(str, command))
    program = str(command[0])
    if shutil.which(program) is None:
        raise FileNotFoundError(2, "no such program", program)
    return ["/bin/sh", "-c", " && ".join([*limits, 'exec "$@"']), "sh", *map(str, command)]


def _within(limit: int, wanted: int) -> int:
    """Return a limit that this process may set: nobody may raise what is lower already."""
    _, hard = resource.getrlimit(limit)
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def how_it_ended(child: subprocess.Popen[bytes]) -> str:
    """Return how a child ended whose connection is closed, such as `was ended by signal 9`."""
    try:
        code = child.wait(_ENDING_S)
    except subprocess.TimeoutExpired:
        return "closed its connection"
    return f"was ended by signal {-code}" if code < 0 else f"ended (exit code {code})"


def kill_group(pid: int) -> None:
    """Kill the process group led by `pid`; a group that is already gone is fine."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _drain(child: subprocess.Popen[bytes], deadline: float, limit: int) -> tuple[str, bool]:
    """Read the child's output until it ends or the deadline passes; return the text and whether time ran out."""
    assert child.stdout is not None
    kept = bytearray()
    dropped = 0
    timed_out = False
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                timed_out = True
                break
            if not selector.select(min(left, 0.5)):
                if child.poll() is not None:
                    break
                continue
            chunk = os.read(child.stdout.fileno(), _READ_BYTES)
            if not chunk:
                timed_out = not _ends_by(child, deadline)
                break
            room = max(0, limit - len(kept))
            kept += chunk[:room]
            dropped += max(0, len(chunk) - room)
    text = kept.decode("utf-8", errors="replace")
    return (f"{text}\n[{dropped} more bytes of output dropped]" if dropped else text), timed_out


def _ends_by(child: subprocess.Popen[bytes], deadline: float) -> bool:
    try:
        child.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True
