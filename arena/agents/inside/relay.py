"""The first program in a box with a network: carries the agent's connections to a Unix socket, then runs its command.

    python -I -S relay.py SOCKET PROXY_PORT [PORT…] -- COMMAND…

Standard library only, Python 3.9 or newer, since it is copied into the box. Behind the socket is the harness' proxy,
which decides; nothing here is trusted. What is sent to 127.0.0.1:PROXY_PORT reaches the proxy as it is; each PORT
stands for the same port on the loopback address of the machine outside.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from typing import Any, NoReturn

LOOPBACK = "127.0.0.1"
CHUNK_BYTES = 1 << 16
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1


def bring_up_loopback() -> bool:
    """Switch the loopback interface of this network namespace on; False where that is not allowed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", 0)
        try:
            flags = struct.unpack("16sH14x", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))[1]
            if not flags & _IFF_UP:
                fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))
        except OSError:
            return False
    return True


def exchange(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes both ways until both sides have ended, then close both."""
    back = threading.Thread(target=_carry, args=(other, one), daemon=True)
    back.start()
    _carry(one, other)
    back.join()
    one.close()
    other.close()


def _carry(source: socket.socket, sink: socket.socket) -> None:
    try:
        while True:
            data = source.recv(CHUNK_BYTES)
            if not data:
                break
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _to_proxy(path: str, port: int | None) -> socket.socket:
    """A connection to the proxy, for `port` one through it to that port outside."""
    proxy = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    proxy.connect(path)
    if port is not None:
        proxy.sendall(f"CONNECT {LOOPBACK}:{port} HTTP/1.1\r\n\r\n".encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            byte = proxy.recv(1)  # one at a time: what follows the answer belongs to the connection
            if not byte:
                raise OSError("the proxy closed the connection")
            answer += byte
        if answer.split(b" ", 2)[1] != b"200":
            raise OSError(f"the proxy refused: {answer!r}")
    return proxy


def _serve(listener: socket.socket, path: str, port: int | None) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_one, args=(connection, path, port), daemon=True).start()


def _one(connection: socket.socket, path: str, port: int | None) -> None:
    try:
        proxy = _to_proxy(path, port)
    except OSError:
        connection.close()
        return
    exchange(connection, proxy)


def listen(path: str, proxy_port: int, ports: list[int]) -> None:
    """Open every port, and answer at them from now on. One that cannot be had is still reached through the proxy."""
    wanted: list[tuple[int, int | None]] = [(proxy_port, None), *((port, port) for port in ports)]
    for number, port in wanted:
        try:
            listener = socket.create_server((LOOPBACK, number), backlog=128)
        except OSError as problem:
            sys.stderr.write(f"relay: {LOOPBACK}:{number} cannot be had in the box: {problem.strerror}\n")
            continue
        threading.Thread(target=_serve, args=(listener, path, port), daemon=True).start()


def run(command: list[str]) -> NoReturn:
    """Run the command, pass signals on to it, and end as it ends."""
    try:
        child = subprocess.Popen(command)
    except OSError as problem:
        sys.stderr.write(f"{command[0]}: {problem.strerror}\n")
        os._exit(127)

    def pass_on(number: int, _: Any) -> None:
        child.send_signal(number)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    code = child.wait()
    if code < 0:
        if code != -signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


def main(arguments: list[str]) -> NoReturn:
    """See the module's docstring."""
    cut = arguments.index("--")
    path, proxy_port, *ports = arguments[:cut]
    bring_up_loopback()
    listen(path, int(proxy_port), [int(port) for port in ports])
    run(arguments[cut + 1 :])


if __name__ == "__main__":
    main(sys.argv[1:])
