"""The builder as a process, `python -m arena.judge.compile.builder_service FD`: compiles side by side, holds no device.

Every request brings the socket on which it is answered, so that requests do not wait for each other.
"""

from __future__ import annotations

import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from arena.judge.compile.builder import Builder
from arena.judge.process.fitting import fit
from arena.judge.process.messages import Compile, Compiled, FromBuilder, HarnessFailed
from arena.judge.workers import scheduling
from arena.processes.wire import Channel, ChannelClosed
from arena.task.corpus.task_folder import load_task

_NICE = 10
"""what is measured meanwhile comes first"""


def main(descriptor: int) -> None:
    """Serve until the runner closes the channel; what was begun is still answered."""
    requests: Channel[Compiled, Compile] = Channel(socket.socket(fileno=descriptor), Compile, takes_files=True)
    os.nice(_NICE)
    builder = Builder()
    try:
        with ThreadPoolExecutor(max_workers=len(scheduling.usable())) as pool:
            while True:
                request, files = requests.receive(None)
                pool.submit(_serve, builder, request, files)
    except ChannelClosed:
        return
    finally:
        builder.close()


def _serve(builder: Builder, request: Compile, files: list[int]) -> None:
    """Answer one request on its own socket; whoever no longer listens needs no answer."""
    for surplus in files[1:]:
        os.close(surplus)
    if not files:
        return
    channel: Channel[FromBuilder, Compile] = Channel(socket.socket(fileno=files[0]), Compile)
    try:
        channel.send(_answer(builder, request))
    except ChannelClosed:
        return
    finally:
        channel.close()


def _answer(builder: Builder, request: Compile) -> FromBuilder:
    try:
        task = load_task(Path(request.task), Path(request.heldout) if request.heldout else None)
        task = task.on(request.environment.device.arch)
        into = Path(request.into) if request.into else None
        refused = builder.compile(task, Path(request.candidate), request.options, request.environment, into)
        return Compiled(None if refused is None else fit(refused))
    except Exception as problem:
        return HarnessFailed.of(problem)


if __name__ == "__main__":
    main(int(sys.argv[1]))
