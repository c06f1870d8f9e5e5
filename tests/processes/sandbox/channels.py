"""Channels by which one worker could leave 64 bits for a later one: written by the first, read by the second.

`python -m tests.processes.sandbox.channels FOLDER WALLED` stands in for the process that workers are forked from.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import resource
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from arena.processes.protocol import Spawn
from arena.processes.sandbox.calls import machine
from arena.worker.fork_server import _enter_sandbox

KEY = 0x61726E61
_LIBC = ctypes.CDLL(None, use_errno=True)
_CREATE = 0o1600
_DAEMON_S = 8
_LONG_AGO = 1_000_000_000


class Place(NamedTuple):
    """Where the two could meet. `shown` is a folder that both may read, with 64 files in it."""

    shown: Path
    homes: tuple[Path, Path]


class Channel(NamedTuple):
    """`leave` is called by the first worker and `find` by the second, which gives what it finds."""

    leave: Callable[[Place, int], object]
    find: Callable[[Place], int]


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _call(name: str, *arguments: object) -> int:
    here = machine()
    assert here is not None
    return _checked(int(_LIBC.syscall(ctypes.c_long(here.numbers[name]), *arguments)))


def _file(folder: Path) -> Channel:
    path = folder / f"arena-channel-{os.getuid()}"
    return Channel(lambda _, bits: path.write_bytes(struct.pack("Q", bits)), lambda _: _unpacked(path.read_bytes()))


def _name(folder: Path) -> Channel:
    """Bits in the name of a folder."""
    return Channel(
        lambda _, bits: (folder / f"arena-name-{bits}").mkdir(),
        lambda _: int(next(folder.glob("arena-name-*")).name.rpartition("-")[2]),
    )


def _unpacked(data: bytes) -> int:
    return int(struct.unpack("Q", data[:8])[0])


def _leave_segment(_: Place, bits: int) -> None:
    _LIBC.shmat.restype = ctypes.c_void_p
    at = _LIBC.shmat(_checked(_LIBC.shmget(KEY, 8, _CREATE)), None, 0)
    ctypes.c_uint64.from_address(at).value = bits


def _find_segment(_: Place) -> int:
    _LIBC.shmat.restype = ctypes.c_void_p
    number = _checked(_LIBC.shmget(KEY, 8, 0))
    bits = ctypes.c_uint64.from_address(_LIBC.shmat(number, None, 0)).value
    _LIBC.shmctl(number, 0, None)
    return bits


def _leave_semaphores(_: Place, bits: int) -> None:
    values = (ctypes.c_ushort * 8)(*(bits >> 8 * index & 0xFF for index in range(8)))
    _checked(_LIBC.semctl(_checked(_LIBC.semget(KEY, 8, _CREATE)), 0, 17, values))


def _find_semaphores(_: Place) -> int:
    values = (ctypes.c_ushort * 8)()
    number = _checked(_LIBC.semget(KEY, 8, 0))
    _checked(_LIBC.semctl(number, 0, 13, values))
    _LIBC.semctl(number, 0, 0, None)
    return sum(value << 8 * index for index, value in enumerate(values))


def _leave_message(_: Place, bits: int) -> None:
    _checked(_LIBC.msgsnd(_checked(_LIBC.msgget(KEY, _CREATE)), struct.pack("lQ", 1, bits), ctypes.c_size_t(8), 0))


def _find_message(_: Place) -> int:
    number, data = _checked(_LIBC.msgget(KEY, 0)), ctypes.create_string_buffer(16)
    _checked(_LIBC.msgrcv(number, data, ctypes.c_size_t(8), ctypes.c_long(0), 0o4000))
    _LIBC.msgctl(number, 0, None)
    return _unpacked(data.raw[8:])


def _leave_queued(_: Place, bits: int) -> None:
    queue = _call("mq_open", b"arena-channel", os.O_CREAT | os.O_RDWR, 0o600, None)
    _call("mq_timedsend", queue, struct.pack("Q", bits), ctypes.c_size_t(8), 0, None)


def _find_queued(_: Place) -> int:
    queue, data = _call("mq_open", b"arena-channel", os.O_RDWR, 0, None), ctypes.create_string_buffer(8192)
    _call("mq_unlink", b"arena-channel")
    _call("mq_timedreceive", queue, data, ctypes.c_size_t(8192), None, None)
    return _unpacked(data.raw)


def _marks(place: Place) -> list[Path]:
    return sorted(place.shown.iterdir())


def _leave_date(place: Place, bits: int) -> None:
    os.utime(_marks(place)[0], ns=(_LONG_AGO * 10**9, bits))


def _leave_reading_dates(place: Place, bits: int) -> None:
    for index, path in enumerate(_marks(place)):
        if bits >> index & 1:
            path.read_bytes()


def _find_reading_dates(place: Place) -> int:
    return sum(1 << index for index, path in enumerate(_marks(place)) if path.stat().st_atime > _LONG_AGO + 1)


def _leave_modes(place: Place, bits: int) -> None:
    for index, path in enumerate(_marks(place)[-8:]):
        path.chmod(0o400 | (bits >> 8 * index & 0xFF))


def _find_modes(place: Place) -> int:
    return sum((path.stat().st_mode & 0xFF) << 8 * index for index, path in enumerate(_marks(place)[-8:]))


def _leave_attribute(place: Place, bits: int) -> None:
    os.setxattr(_marks(place)[1], "user.arena", struct.pack("Q", bits))


def _find_attribute(place: Place) -> int:
    return _unpacked(os.getxattr(_marks(place)[1], "user.arena"))


def _leave_key(_: Place, bits: int) -> None:
    _call("add_key", b"user", b"arena", struct.pack("Q", bits), ctypes.c_size_t(8), -4)


def _find_key(_: Place) -> int:
    data = ctypes.create_string_buffer(8)
    number = _call("keyctl", 10, -4, b"user", b"arena", 0)
    _call("keyctl", 11, number, data, ctypes.c_size_t(8))
    _call("keyctl", 9, number, -4)
    return _unpacked(data.raw)


def _leave_limit(_: Place, bits: int) -> None:
    """In the process that workers are forked from, and so in every later one."""
    resource.prlimit(os.getppid(), resource.RLIMIT_RTTIME, (bits, resource.RLIM_INFINITY))


def _leave_daemon(_: Place, bits: int) -> None:
    """A process outside of the group, which is not ended with it, and answers by a name without a file."""
    if os.fork() == 0:
        os.setsid()
        signal.alarm(_DAEMON_S)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("\0arena-channel")
            listener.listen()
            listener.accept()[0].send(struct.pack("Q", bits))
        os._exit(0)
    time.sleep(0.2)


def _find_daemon(_: Place) -> int:
    with socket.socket(socket.AF_UNIX) as one:
        one.connect("\0arena-channel")
        return _unpacked(one.recv(8))


def _leave_pages(place: Place, bits: int) -> None:
    """Drop what is in memory of the files whose bit is 0."""
    for index, path in enumerate(_marks(place)):
        if not bits >> index & 1:
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _find_pages(place: Place) -> int:
    """A read that may not wait fails where a page is not in memory."""
    found = 0
    for index, path in enumerate(_marks(place)):
        with path.open("rb") as file, suppress(BlockingIOError):
            found |= os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT) << index
    return found


def _find_mapped_pages(place: Place) -> int:
    found = 0
    for index, path in enumerate(_marks(place)):
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            first = np.frombuffer(mapped, dtype=np.uint8).ctypes.data
            here = ctypes.c_ubyte()
            _call("mincore", ctypes.c_void_p(first), ctypes.c_size_t(1), ctypes.byref(here))
            found |= (here.value & 1) << index
    return found


def _find_counted_pages(place: Place) -> int:
    found = 0
    for index, path in enumerate(_marks(place)):
        with path.open("rb") as file:
            whole, counts = (ctypes.c_uint64 * 2)(0, 0), (ctypes.c_uint64 * 5)()
            _call("cachestat", file.fileno(), ctypes.byref(whole), ctypes.byref(counts), 0)
            found |= min(counts[0], 1) << index
    return found


CHANNELS = {
    "a file in /dev/shm": _file(Path("/dev/shm")),
    "a file in /tmp": _file(Path("/tmp")),
    "a file in /var/tmp": _file(Path("/var/tmp")),
    "a file in /run": _file(Path("/run")),
    "a file in the user's home": _file(Path.home()),
    "a file in the first worker's home": Channel(
        lambda place, bits: (place.homes[0] / "left").write_bytes(struct.pack("Q", bits)),
        lambda place: _unpacked((place.homes[0] / "left").read_bytes()),
    ),
    "a file beside what both are shown": Channel(
        lambda place, bits: (place.shown.parent / "left").write_bytes(struct.pack("Q", bits)),
        lambda place: _unpacked((place.shown.parent / "left").read_bytes()),
    ),
    "the name of a folder": _name(Path("/tmp")),
    "a System V segment": Channel(_leave_segment, _find_segment),
    "System V semaphores": Channel(_leave_semaphores, _find_semaphores),
    "a System V message": Channel(_leave_message, _find_message),
    "a message queue": Channel(_leave_queued, _find_queued),
    "the date of a file": Channel(_leave_date, lambda place: _marks(place)[0].stat().st_mtime_ns),
    "the dates that reading leaves": Channel(_leave_reading_dates, _find_reading_dates),
    "modes of files": Channel(_leave_modes, _find_modes),
    "an attribute of a file": Channel(_leave_attribute, _find_attribute),
    "a key": Channel(_leave_key, _find_key),
    "a limit of the fork server": Channel(_leave_limit, lambda _: resource.getrlimit(resource.RLIMIT_RTTIME)[0]),
    "a process that stays": Channel(_leave_daemon, _find_daemon),
    "pages in memory, by mincore": Channel(_leave_pages, _find_mapped_pages),
    "pages in memory, by cachestat": Channel(_leave_pages, _find_counted_pages),
    "pages in memory, by reads that do not wait": Channel(_leave_pages, _find_pages),
}


def _worker(place: Place, which: int, confined: bool, act: Callable[[], object]) -> None:
    """In a fork: what `_become_host` does, and then this."""
    home = place.homes[which]
    if confined:
        _enter_sandbox(Spawn(str(home), str(home / "triton"), (), (str(place.shown),)))
    else:
        os.setpgid(0, 0)
    act()


def _in_a_worker(place: Place, which: int, confined: bool, act: Callable[[], object]) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            _worker(place, which, confined, act)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _leave_all(place: Place, bits: int) -> None:
    for channel in CHANNELS.values():
        with suppress(OSError):
            channel.leave(place, bits)


def _find_all(place: Place, bits: int, answer: int) -> None:
    found = []
    for name, channel in CHANNELS.items():
        with suppress(OSError, StopIteration, struct.error):
            if channel.find(place) == bits:
                found.append(name)
    os.write(answer, json.dumps(found).encode())


def _written(path: Path) -> None:
    """Have it on the disk: what is not yet there cannot be dropped from memory."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _main(folder: Path, confined: bool) -> None:
    place = Place(folder / "shown", (folder / "first", folder / "second"))
    for path in (place.shown, *(home / "triton" for home in place.homes)):
        path.mkdir(parents=True)
    for index in range(64):
        path = place.shown / f"{index:02}"
        path.write_text("x")
        os.utime(path, (_LONG_AGO, _LONG_AGO + 1))
        _written(path)
    bits = int.from_bytes(os.urandom(8)) >> 2 | 1 << 61
    _in_a_worker(place, 0, confined, lambda: _leave_all(place, bits))
    _in_a_worker(place, 1, confined, lambda: _find_all(place, bits, 1))
    for left in Path("/tmp").glob(f"arena-name-{bits}"):
        left.rmdir()
    for directory in ("/dev/shm", "/tmp", "/var/tmp", "/run", str(Path.home())):
        Path(directory, f"arena-channel-{os.getuid()}").unlink(missing_ok=True)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), sys.argv[2] == "1")
