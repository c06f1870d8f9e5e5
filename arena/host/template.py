"""The process that hosts are forked from: it has imported the heavy libraries, and never touches a device.

Started as `python -m arena.host.template PLATFORM FD`, FD being one end of a Unix socket on which the judge asks for
hosts. A fork after a parallel region hangs, so this process runs none; `OMP_NUM_THREADS=1` is in its environment.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import time
import traceback
from pathlib import Path

from arena.host import operators
from arena.host.serve import Host
from arena.platforms import platform
from arena.platforms.base import Platform
from arena.protocol import Ended, FromHost, FromTemplate, Ready, Reap, Spawn, Spawned, ToHost, ToTemplate
from arena.sandbox import Walls, enter, places, seal
from arena.sandbox.seccomp import Strictness
from arena.wire import Channel, ChannelClosed

_REAP_S = 2.0


def main(platform_name: str, descriptor: int) -> None:
    """Import what hosts need, then fork one for each `Spawn` until the judge is gone."""
    _import_libraries()
    device = platform(platform_name)  # its module is imported here once; only a host wakes the device
    operators.computing(device.torch_device)
    channel: Channel[FromTemplate, ToTemplate] = Channel(socket.socket(fileno=descriptor), ToTemplate, takes_files=True)
    ended: dict[int, int] = {}
    while True:
        try:
            message, files = channel.receive(None)
        except ChannelClosed:
            return
        if isinstance(message, Spawn):
            pid = os.fork()
            if pid == 0:
                channel.close()
                _become_host(device, message, files)
            for file in files:
                os.close(file)
            channel.send(Spawned(pid))
        else:
            channel.send(_reap(message, ended))


def _import_libraries() -> None:
    import torch

    torch.set_num_threads(1)
    try:
        import triton.language  # noqa: F401
    except ImportError:
        return
    if os.environ.get("TRITON_INTERPRET") == "1":
        import scipy.special  # noqa: F401 - the interpreter's functions need it: once here, not in every host

        from arena.toolchains import interpreter

        interpreter.install()
    else:
        from arena.toolchains import triton_cross

        triton_cross.warm()


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


def _become_host(device: Platform, message: Spawn, files: list[int]) -> None:
    """In the fork: go behind the walls, then obey the judge. Never returns."""
    code = 70
    try:
        channel_file, log_file = files
        for stream in (1, 2):
            os.dup2(log_file, stream)
        os.close(log_file)
        _own_environment(message)
        level = _go_behind_walls(message)
        channel: Channel[FromHost, ToHost] = Channel(socket.socket(fileno=channel_file), ToHost, takes_files=True)
        channel.send(Ready(level))
        code = Host(channel, device).run()
    except SystemExit as exit_request:
        code = exit_request.code if isinstance(exit_request.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code & 0xFF)


def _go_behind_walls(message: Spawn) -> str:
    """Of no return: what is opened later is opened from inside. Returns the level in force."""
    level = enter(Walls(hide=message.hide))
    files = places.for_host((message.folder, message.cache), message.show, message.hide)
    return level + seal.close(seal.Seal(strictness=Strictness.HOST, files=files))


def _own_environment(message: Spawn) -> None:
    folder = Path(message.folder)
    folder.mkdir(parents=True, exist_ok=True)
    Path(message.cache).mkdir(parents=True, exist_ok=True)  # a rule can be made only for what exists
    tempfile.tempdir = None  # in case an import has asked for it
    os.environ.update(HOME=message.folder, TMPDIR=message.folder, TRITON_CACHE_DIR=message.cache)
    os.environ["TRITON_HOME"] = message.folder
    os.chdir(folder)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
