"""A judge with one worker: this module, started with FOLDER PORT NAME, prints what the worker can reach.

The judge listens on an abstract Unix socket and hands a file over, as the HIP runtime does with a DMA-buf. PORT (TCP
and UDP) and NAME (an abstract Unix socket) belong to processes outside.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from arena.processes.protocol import Spawn
from arena.worker.fork_server import _enter_sandbox

WORDS = b"a buffer"


def _judge(listener: socket.socket) -> None:
    shared = os.memfd_create("buffer")
    os.write(shared, WORDS)
    while True:
        one, _ = listener.accept()
        with one:
            socket.send_fds(one, [b"x"], [shared])


def _received(name: str) -> str:
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(name)
        _, (file,), _, _ = socket.recv_fds(one, 1, 1)
        return os.pread(file, 64, 0).decode()


def _connected(name: str) -> str:
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(name)
    return "connected"


def _sent(port: int) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"x", ("127.0.0.1", port))
    return "sent"


def _tried(attempt: Callable[[], str]) -> str:
    try:
        return attempt()
    except OSError as problem:
        return type(problem).__name__


def _worker(folder: Path, port: int, outside: str, judge: str) -> dict[str, str]:
    level = _enter_sandbox(Spawn(str(folder), str(folder / "triton")))
    return {
        "level": level,
        "judge": _tried(lambda: _received(judge)),
        "outside": _tried(lambda: _connected(outside)),
        "TCP": _tried(lambda: str(socket.create_connection(("127.0.0.1", port), 1.0))),
        "UDP": _tried(lambda: _sent(port)),
    }


def _main(folder: Path, port: int, outside: str) -> None:
    (folder / "triton").mkdir(parents=True)
    name = f"\0arena-judge-{os.getpid()}"
    read_end, write_end = os.pipe()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen()
    pid = os.fork()
    if pid == 0:
        os.write(write_end, json.dumps(_worker(folder, port, outside, name)).encode())
        os._exit(0)
    os.close(write_end)
    threading.Thread(target=_judge, args=(listener,), daemon=True).start()
    os.waitpid(pid, 0)
    os.write(1, os.read(read_end, 1 << 16))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]), "\0" + sys.argv[3])
