"""The simulated device: a process that executes the kernels of all processes which opened /dev/kfd.

`python -m tests.rocm.device SOCKET OBJDUMP CACHE LAUNCHES` listens on a Unix socket, and forks for each process that
connects. The driver of `driver/` sends its buffers, which are mapped here, and its dispatch packets, one at a time.
Each dispatch becomes a line of the file LAUNCHES: its code, and the milliseconds that the simulation took.
"""

from __future__ import annotations

import array
import os
import re
import select
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from pathlib import Path

from arena.platforms.cpu.amd_isa.faults import MachineFault, NotModelled
from tests.rocm.device_memory import ProcessMemory
from tests.rocm.dispatch import Processor
from tests.rocm.machine_code import CodeOfKernels

REQUEST = struct.Struct("<IIQQQQQ64s")
"""`struct request` of driver/driver.h"""
REPLY = struct.Struct("<iIQ240s")
"""`struct reply` of driver/driver.h"""
ADD, REMOVE, DISPATCH = 1, 2, 3
_FAULT, _NOT_MODELLED, _BROKEN = 1, 2, 3
_PEER = struct.Struct("3i")
_ARCH = "gfx942"
_MOST_TEXT = 239
_ADDRESS = re.compile(r"at (0x[0-9a-f]+)")


class Client:
    """One connected process."""

    def __init__(self, connection: socket.socket, arch: str, code: CodeOfKernels, launches: Path) -> None:
        self._connection = connection
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        self._pid = _PEER.unpack(peer)[0]
        self._memory = ProcessMemory(self._pid)
        self._processor = Processor(arch, self._memory, code)
        self._launches = launches

    def serve(self) -> None:
        """Answer until the process is gone."""
        while True:
            message, control, _, _ = self._connection.recvmsg(REQUEST.size, socket.CMSG_SPACE(4))
            if not message:
                return
            files = [array.array("i", data)[0] for _, _, data in control]
            try:
                answer = self._answer(REQUEST.unpack(message), files)
            finally:
                for file in files:
                    os.close(file)
            self._connection.send(answer)

    def _answer(self, request: tuple[int, int, int, int, int, int, int, bytes], files: list[int]) -> bytes:
        kind, _, handle, address, user_address, num_bytes, packet_address, packet = request
        try:
            if kind == ADD and files:
                self._memory.share(handle, address, num_bytes, files[0])
            elif kind == ADD:
                self._memory.lend(handle, address, num_bytes, user_address)
            elif kind == REMOVE:
                self._memory.unmap(handle)
            else:
                self._launch(packet, packet_address)
        except MachineFault as problem:
            found = _ADDRESS.search(str(problem))
            return reply(_FAULT, f"memory or machine fault: {problem}", int(found[1], 16) if found else 0)
        except NotModelled as problem:
            return reply(_NOT_MODELLED, f"not modelled: {problem}")
        except Exception as problem:  # whatever it is, the process is told
            traceback.print_exc()
            return reply(_BROKEN, f"the simulation failed: {type(problem).__name__}: {problem}")
        return reply()

    def _launch(self, packet: bytes, packet_address: int) -> None:
        began = time.monotonic()
        code = self._processor.run(packet, packet_address)
        with self._launches.open("a", encoding="ascii") as file:
            file.write(f"{code} {1e3 * (time.monotonic() - began):.2f}\n")


def reply(status: int = 0, text: str = "", address: int = 0) -> bytes:
    """Return the bytes of an answer."""
    return REPLY.pack(status, 0, address, text.encode("ascii", "replace")[:_MOST_TEXT])


def main(path: Path, objdump: Path, cache: Path, launches: Path) -> None:
    """Listen until killed. Prints one line once processes may connect."""
    code = CodeOfKernels(_ARCH, objdump, cache)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(str(path))
        path.chmod(0o666)
        listening.listen()
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _serve(Client(connection, _ARCH, code, launches), connection)
            connection.close()


def _serve(client: Client, connection: socket.socket) -> None:
    """Serve one process, and end with it, also where it ends in the middle of a kernel. Never returns."""
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    try:
        client.serve()
    except (ConnectionError, OSError):
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _end_with(connection: socket.socket) -> None:
    poll = select.poll()
    poll.register(connection, 0)  # only that the other side is gone
    poll.poll()
    os._exit(0)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
