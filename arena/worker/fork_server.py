"""The process that workers are forked from: it has imported the heavy libraries, and never touches a device.

Started as `python -m arena.worker.fork_server PLATFORM FD`, FD being one end of a Unix socket on which the judge asks
for workers. With an empty PLATFORM it imports nothing heavy, and every worker is a HIP worker. A fork after a parallel
region hangs, so this process runs none; `OMP_NUM_THREADS=1` is in its environment.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from functools import cache
from pathlib import Path

from arena.extras import is_installed
from arena.platforms.base import Platform
from arena.processes.flags import Flags
from arena.processes.protocol import (
    Ended,
    FromForkServer,
    FromWorker,
    Ready,
    Reap,
    Spawn,
    Spawned,
    ToForkServer,
    ToWorker,
)
from arena.processes.sandbox import Namespaces, confinement, enter, network, places
from arena.processes.sandbox.seccomp import Strictness
from arena.processes.wire import Channel, ChannelClosed

_REAP_S = 2.0
_CPU = "cpu"


def main(platform_name: str, descriptor: int) -> None:
    """Import what workers need, then fork one for each `Spawn` until the judge is gone."""
    device = ready_device(platform_name) if platform_name else None
    channel: Channel[FromForkServer, ToForkServer] = Channel(
        socket.socket(fileno=descriptor), ToForkServer, takes_files=True
    )
    ended: dict[int, int] = {}
    while True:
        try:
            message, files = channel.receive(None)
        except ChannelClosed:
            return
        if isinstance(message, Spawn):
            if message.modules:
                _ready_meta_device()
            pid = os.fork()
            if pid == 0:
                channel.close()
                _become_python_worker(device, message, files)  # without a device it becomes a worker
            for file in files:
                os.close(file)
            answer: FromForkServer = Spawned(pid)
        else:
            answer = _reap(message, ended)
        try:
            channel.send(answer)
        except ChannelClosed:
            return


def ready_device(platform_name: str) -> Platform:
    """Return a platform whose module is imported here once, with what workers need; only a worker wakes the device."""
    from arena.platforms import platform
    from arena.worker import command_loop, operators  # noqa: F401 - the second for workers

    _import_libraries()
    device = platform(platform_name)
    operators.computing(device.torch_device)
    return device


def _import_libraries() -> None:
    import torch

    torch.set_num_threads(1)
    try:
        import triton.language  # noqa: F401
    except ImportError:
        return
    if os.environ.get("TRITON_INTERPRET") == "1":
        if not is_installed("ml_dtypes"):  # then no Triton task is evaluated here
            return
        import scipy.special  # noqa: F401 - the interpreter's functions need it: once here, not in every worker

        from arena.platforms.cpu import triton as interpreter

        interpreter.install()
    else:
        from arena.platforms.cross import triton as triton_cross

        triton_cross.warm()


@cache
def _ready_meta_device() -> None:
    """Have PyTorch import what its first operator without memory needs: seconds, once here and not in each worker."""
    import torch

    torch.empty(1, device="meta").normal_()


def _reap(message: Reap, ended: dict[int, int]) -> Ended:
    """Collect every child that has ended; wait a moment for the one asked about."""
    deadline = time.monotonic() + _REAP_S
    while message.pid not in ended and time.monotonic() < deadline:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid:
            ended[pid] = os.waitstatus_to_exitcode(status)
        else:
            time.sleep(0.005)
    return Ended(message.pid, ended.pop(message.pid, None))


def _become_python_worker(device: Platform | None, message: Spawn, files: list[int]) -> None:
    """In the fork: enter the sandbox, then obey the judge. Never returns."""
    code = 70
    try:
        channel_file, log_file, *flags_file = files
        for stream in (1, 2):
            os.dup2(log_file, stream)
        os.close(log_file)
        _own_environment(message)
        level = _enter_sandbox(message, gpus=device is None or device.name != _CPU)
        channel: Channel[FromWorker, ToWorker] = Channel(socket.socket(fileno=channel_file), ToWorker, takes_files=True)
        channel.send(Ready(level))
        if message.worker:
            _become_native_worker(message, [channel_file, *flags_file])
        assert device is not None
        from arena.worker.command_loop import CommandLoop

        code = CommandLoop(channel, device, Flags(*flags_file) if flags_file else None).run()
    except SystemExit as exit_request:
        code = exit_request.code if isinstance(exit_request.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        for output in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):  # None, where ours were closed when we started
                output.flush()
        os._exit(code & 0xFF)


def _become_native_worker(message: Spawn, files: list[int]) -> None:
    """Replace Python by the native worker; number, channel, log, flags and sandbox stay. Never returns."""
    confinement.refuse_processes(programs=True)  # the worker, which is one
    for file in files:
        os.set_inheritable(file, True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TRITON"))}
    if message.preload:
        kept["LD_PRELOAD"] = message.preload
    os.execve(message.worker, [message.worker, *map(str, files)], kept)


def _enter_sandbox(message: Spawn, *, gpus: bool = True) -> str:
    """Of no return: what is opened later is opened from inside. Returns the level in force."""
    own = (message.folder, message.cache)
    level = enter(Namespaces(hide=message.hide, own=own, network=os.environ.get(network.IN_FORCE, "")))
    if message.worker:
        files = places.for_native_worker(own, message.show, message.hide, level)
    else:
        files = places.for_python_worker(own, message.show, message.hide, level, gpus=gpus)
    return level + confinement.confine(confinement.Confinement(strictness=Strictness.WORKER, files=files, level=level))


def _own_environment(message: Spawn) -> None:
    folder = Path(message.folder)
    folder.mkdir(parents=True, exist_ok=True)
    Path(message.cache).mkdir(exist_ok=True)  # a rule can be made only for what exists
    tempfile.tempdir = None  # in case an import has asked for it
    os.environ.update(HOME=message.folder, TMPDIR=message.folder, TRITON_CACHE_DIR=message.cache)
    os.environ["TRITON_HOME"] = message.folder
    os.chdir(folder)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
