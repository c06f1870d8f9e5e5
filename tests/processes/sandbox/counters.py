"""Counters of the machine by which one worker could tell another a number of a few bits, and how many bits pass.

`python -m tests.processes.sandbox.counters --rounds N` measures all of them and prints a table. `exchange.py` runs the
workers, `information.py` counts the bits. `channels.py` holds what can be left exactly, and is closed.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import hashlib
import json
import mmap
import os
import platform
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from arena.processes.sandbox.calls import machine
from arena.processes.sandbox.escape import attempt_escape
from tests.processes.sandbox.channels import _LIBC, Place, _call, _checked, _marks
from tests.processes.sandbox.exchange import make_place, measure

_GIVE_UP_S = 2.0
_COLD_S = 15e-6
_PAGE = mmap.PAGESIZE
_MIB = 1 << 20
_HELD: list[object] = []
"""resources that a worker keeps until it ends"""
_BESIDE = 200
"""how many process ids below its own a worker searches for the other"""
_FUTEX = {"x86_64": 202, "aarch64": 98}


class Counter(NamedTuple):
    """`leave` is called by the first worker with a number below `levels`, and `read` by the second.

    `cyclic` values go round at `levels`. `before`: a worker that is alive meanwhile reads twice and takes the
    difference. `by` is the interface, as the page names it. `wall` is the part of the sandbox that closes it, if any.
    It is then measured without the sandbox too, where that is `harmless`.
    """

    leave: Callable[[Place, int], object]
    read: Callable[[Place], float]
    by: str
    levels: int = 16
    cyclic: bool = False
    before: bool = True
    wall: str = ""
    harmless: bool = True


def _cyclic(now: Callable[[], float], act: Callable[[Place, int], object], by: str, size: int, levels: int) -> Counter:
    """Return a counter that only grows: the first worker advances it until its remainder stands for the number."""

    def leave(place: Place, number: int) -> None:
        span, until = size * levels, time.monotonic() + _GIVE_UP_S
        while time.monotonic() < until:
            left = int((number + 0.5) * size - now()) % span
            if min(left, span - left) <= size // 4:
                return
            act(place, left)

    return Counter(leave, lambda _: now() / size % levels, by, levels, cyclic=True)


def _scaled(leave: Callable[[Place, int], object], by: int) -> Callable[[Place, int], object]:
    return lambda place, number: leave(place, by * number)


def _lines(path: str) -> int:
    return len(Path(path).read_bytes().splitlines())


def _field(path: str, key: str, index: int = 1) -> int:
    """Return a number from the line of a file that begins with a key."""
    with Path(path).open(encoding="ascii") as file:
        return next(int(words[index]) for words in map(str.split, file) if words[0].rstrip(":") == key)


def _word(path: str, index: int) -> int:
    """Return a number from the only line of a file."""
    return int(Path(path).read_text(encoding="ascii").replace("/", " ").split()[index])


def _number(call: str) -> int:
    here = machine()
    assert here is not None
    return _FUTEX[here.name] if call == "futex" else here.numbers[call]


# Counters that grow.


def _start_threads(_: Place, count: int) -> None:
    for _index in range(min(count, 4096)):
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()


def _next_id() -> int:
    """Return the id of a new thread, which is taken from those of processes."""
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    assert thread.native_id is not None
    return thread.native_id


def _touch(_: Place, pages: int) -> None:
    with mmap.mmap(-1, min(pages, 1 << 16) * _PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        touched = np.frombuffer(memory, dtype=np.uint8)
        touched[::_PAGE] = 1
        del touched


def _nap(_: Place, count: int) -> None:
    for _index in range(min(count // 2 + 1, 4096)):
        time.sleep(1e-6)


def _burn(_: Place, ticks: int) -> None:
    """Take processor time as a process of lower priority, which is counted apart."""
    if os.getpriority(os.PRIO_PROCESS, 0) == 0:
        os.nice(1)
    until = time.process_time() + min(ticks, 20) * 0.01
    while time.process_time() < until:
        pass


def _written_sectors() -> int:
    lines = Path("/proc/diskstats").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[9]) for line in lines)


def _written_sectors_in_sys() -> int:
    return sum(_word(str(path), 6) for path in Path("/sys/block").glob("*/stat"))


def _write(place: Place, sectors: int) -> None:
    with (place.homes[0] / "written").open("wb", buffering=0) as file:
        file.write(os.urandom(min(sectors, 1 << 15) * 512))
        os.fsync(file.fileno())
    (place.homes[0] / "written").unlink()


def _miss(_: Place, count: int) -> None:
    """Ask for files that are not there: the kernel remembers each name."""
    start = os.urandom(8).hex()
    for index in range(min(count, 1 << 15)):
        os.access(f"/usr/lib/{start}-{index}", os.F_OK)


def _pipe_inode() -> int:
    ends = os.pipe()
    number = os.fstat(ends[0]).st_ino
    for end in ends:
        os.close(end)
    return number


def _memfile_inode() -> int:
    file = os.memfd_create("counter")
    number = os.fstat(file).st_ino
    os.close(file)
    return number


def _cookie() -> int:
    with socket.socket(socket.AF_UNIX) as one:
        return int.from_bytes(one.getsockopt(socket.SOL_SOCKET, 57, 8), sys.byteorder)


def _repeat(what: Callable[[], object], _: Place, count: int) -> None:
    for _index in range(min(count, 1 << 14)):
        what()


def _shootdowns() -> int:
    lines = Path("/proc/interrupts").read_text(encoding="ascii").splitlines()
    return sum(int(word) for line in lines if line.lstrip().startswith("TLB:") for word in line.split()[1:3])


def _shoot_down(_: Place, count: int) -> None:
    """Free pages beside a thread on another processor, which is interrupted to forget them."""
    if threading.active_count() == 1:
        threading.Thread(target=_spin, daemon=True).start()
    for _index in range(min(count, 256)):
        with mmap.mmap(-1, _PAGE) as memory:
            memory[0] = 1


# Amounts that a living worker holds.


def _spin() -> None:
    """Take processor time outside of Python's lock."""
    while True:
        hashlib.sha256(bytes(1 << 16))


def _hold_threads(_: Place, count: int, target: Callable[[], object] | None = None) -> None:
    for _index in range(count):
        threading.Thread(target=target or threading.Event().wait, daemon=True).start()


def _hold_spinning(place: Place, count: int) -> None:
    """Spin at the lowest priority: that disturbs least, and counts as running."""
    os.nice(19)
    _hold_threads(place, count, _spin)
    time.sleep(0.02)


def _most_running(_: Place) -> int:
    seen = []
    for _index in range(10):
        seen.append(_word("/proc/loadavg", 3))
        time.sleep(0.004)
    return max(seen)


def _sysinfo(type_: str, index: int) -> int:
    """Return one field of sysinfo(2), by its place among fields of that type."""
    raw = np.zeros(128, dtype=np.uint8)
    _checked(_LIBC.sysinfo(ctypes.c_void_p(raw.ctypes.data)))
    return int(raw.view(type_)[index])


def _hold_shared(_: Place, mebibytes: int) -> None:
    with Path(f"/dev/shm/counter-{os.getpid()}").open("wb") as file:
        _HELD.append(file)
        file.write(bytes(mebibytes * _MIB))


def _hold_promised(_: Place, mebibytes: int) -> None:
    if mebibytes:
        _HELD.append(mmap.mmap(-1, mebibytes * _MIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def _hold_memory(_: Place, mebibytes: int) -> None:
    _HELD.append(bytearray(os.urandom(1) * (mebibytes * _MIB)))


def _hold_blocks(place: Place, mebibytes: int) -> None:
    with (place.homes[0] / "blocks").open("wb") as file:
        if mebibytes:
            os.posix_fallocate(file.fileno(), 0, mebibytes * _MIB)


def _hold_files(place: Place, count: int) -> None:
    for index in range(count):
        (place.homes[0] / f"counter-{index}").touch()


def _hold_shared_files(_: Place, count: int) -> None:
    for index in range(count):
        Path(f"/dev/shm/counter-{os.getpid()}-{index}").touch()


def _home(place: Place) -> Path:
    return place.homes[1]


def _shm(_: Place) -> Path:
    return Path("/dev/shm")


def _free(folder: Callable[[Place], Path], name: str) -> Callable[[Place], int]:
    return lambda place: int(getattr(os.statvfs(folder(place)), name))


def _hold_open(_: Place, count: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    _HELD.extend(os.open("/dev/null", os.O_RDONLY) for _ in range(count))


def _hold_pipes(_: Place, number: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    _HELD.extend(os.pipe() for _ in range(1100 * number))


def _pipe_size(_: Place) -> int:
    ends = os.pipe()
    size = fcntl.fcntl(ends[0], fcntl.F_GETPIPE_SZ)
    for end in ends:
        os.close(end)
    return size


def _hold_signals(_: Place, count: int) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
    for _index in range(count):
        os.kill(os.getpid(), signal.SIGRTMIN)


def _queued(_: Place) -> int:
    text = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(text.partition("SigQ:")[2].split("/")[0])


# Properties of the other process.


def _other() -> int:
    """Return the nearest older leader of a process group: the first worker, where it lives."""
    for pid in range(os.getpid() - 1, max(os.getpid() - _BESIDE, 1), -1):
        with suppress(ProcessLookupError):
            if os.getpgid(pid) == pid != os.getppid():
                return pid
    raise ProcessLookupError


def _name(_: Place, number: int) -> None:
    _checked(_LIBC.prctl(15, f"arena-{number}".encode(), 0, 0, 0))


def _read_name(_: Place) -> int:
    for pid in range(os.getpid() - 1, max(os.getpid() - _BESIDE, 1), -1):
        with suppress(FileNotFoundError, ProcessLookupError):
            name = Path(f"/proc/{pid}/comm").read_text(encoding="ascii", errors="replace").strip()
            if name.startswith("arena-") and name[6:].isdigit():
                return int(name[6:])
    return -1


def _set_ioprio(_: Place, number: int) -> None:
    _checked(_LIBC.syscall(_number("ioprio_set"), 1, 0, 2 << 13 | number))


def _work(_: Place, number: int) -> None:
    until = time.process_time() + 0.02 * number
    while time.process_time() < until:
        pass


def _clock_of_other(_: Place) -> float:
    return time.clock_gettime(~_other() << 3 | 2)


def _futex(place: Place, operation: int, value: int) -> int:
    """Wait or wake at the first word of a file that both may only read."""
    with _marks(place)[0].open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    _HELD.append(mapped)
    at = np.frombuffer(mapped, dtype=np.uint8).ctypes.data
    return _checked(int(_LIBC.syscall(_number("futex"), ctypes.c_void_p(at), operation, value, None, None, 0)))


def _wait_in_file(place: Place, count: int) -> None:
    for _index in range(count):
        threading.Thread(target=_futex, args=(place, 0, 0x78787878), daemon=True).start()
    time.sleep(0.02)


# Time.


def _loop_time(_: Place) -> float:
    started = time.perf_counter()
    for _index in range(300):
        hashlib.sha256(bytes(1 << 16))
    return time.perf_counter() - started


def _waited(place: Place) -> float:
    started = _word("/proc/self/schedstat", 1)
    _loop_time(place)
    return _word("/proc/self/schedstat", 1) - started


def _busy(place: Place, number: int) -> None:
    _hold_threads(place, 2 * number, _spin)


def _bring(place: Place, number: int) -> None:
    """Read the cold files whose bit is 1. `exchange.py` drops all of them from memory before."""
    for index in range(4):
        if number >> index & 1:
            _marks(place)[index].read_bytes()


def _read_times(place: Place) -> int:
    found = 0
    for index in range(4):
        with _marks(place)[index].open("rb") as file:
            started = time.perf_counter()
            os.pread(file.fileno(), 1, 0)
            found |= (time.perf_counter() - started < _COLD_S) << index
    return found


def _major_faults(place: Place) -> int:
    found = 0
    for index in range(4):
        with _marks(place)[index].open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            started = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
            assert mapped[0]
            found |= (resource.getrusage(resource.RUSAGE_SELF).ru_majflt == started) << index
    return found


# Closed, or without effect.


def _draw(_: Place, count: int) -> None:
    os.urandom(count)


def _lock(place: Place, count: int) -> None:
    for index in range(count):
        file = (place.homes[0] / f"lock-{index}").open("w")
        _HELD.append(file)
        fcntl.flock(file, fcntl.LOCK_EX)


def _lease(place: Place, number: int) -> None:
    if number:
        file = _marks(place)[0].open("rb")
        _HELD.append(file)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)


def _listen(_: Place, number: int) -> None:
    one = socket.socket(socket.AF_UNIX)
    _HELD.append(one)
    one.bind(f"\0arena-counter-{number}")
    one.listen()


def _find_listener(_: Place) -> int:
    for number in range(16):
        with socket.socket(socket.AF_UNIX) as one, suppress(ConnectionRefusedError):
            one.connect(f"\0arena-counter-{number}")
            return number
    return -1


def _mount(place: Place, number: int) -> None:
    for _index in range(number):
        _checked(_LIBC.mount(b"none", os.fsencode(place.homes[0]), b"tmpfs", 0, b"size=4k"))


def _mount_id(_: Place) -> int:
    return max(int(line.split()[0]) for line in Path("/proc/self/mountinfo").open(encoding="utf-8"))


def _node_shared() -> int:
    return sum(
        int(line.split()[3])
        for path in Path("/sys/devices/system/node").glob("node*/meminfo")
        for line in path.read_text(encoding="ascii").splitlines()
        if line.split()[2] == "Shmem:"
    )


def _add_keys(_: Place, count: int) -> None:
    for index in range(count):
        _call("add_key", b"user", f"arena-{index}".encode(), b"x", 1, -2)


def _idle_states() -> float:
    found = list(Path("/sys/devices/system/cpu").glob("cpu*/cpuidle/state*/usage"))
    if not found:
        raise FileNotFoundError("no idle states")
    return sum(_word(str(path), 0) for path in found)


def _frequency(_: Place) -> float:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return max(float(line.partition(":")[2]) for line in lines if line.startswith("cpu MHz"))


def _group_file() -> str:
    """Return the file with the memory of the outermost control group that is seen; its name depends on the version."""
    folder = Path("/sys/fs/cgroup")
    found = [*folder.glob("memory.current"), *folder.glob("memory/memory.usage_in_bytes")]
    if not found:
        raise FileNotFoundError(folder)
    return str(found[0])


_VMSTAT, _STAT, _MEMINFO, _SETTINGS = "/proc/vmstat", "/proc/stat", "/proc/meminfo", "/proc/sys"
_OWN_SHM = "its own /dev/shm"

COUNTERS = {
    # counters that only grow
    "ids of new threads": _cyclic(_next_id, _start_threads, "clone", 8, 16),
    "last process id": _cyclic(lambda: _word("/proc/sys/kernel/ns_last_pid", 0), _start_threads, _SETTINGS, 8, 16),
    "processes started": _cyclic(lambda: _field(_STAT, "processes"), _start_threads, _STAT, 8, 16),
    "context switches": _cyclic(lambda: _field(_STAT, "ctxt"), _nap, _STAT, 2000, 2),
    "processor time at low priority": _cyclic(lambda: _field(_STAT, "cpu", 2), _burn, _STAT, 4, 2),
    "TLB shootdowns": _cyclic(_shootdowns, _shoot_down, "/proc/interrupts", 400, 2),
    "page faults": _cyclic(lambda: _field(_VMSTAT, "pgfault"), _touch, _VMSTAT, 20_000, 2),
    "sectors written": _cyclic(_written_sectors, _write, "/proc/diskstats", 4096, 4),
    "sectors written, in sysfs": _cyclic(_written_sectors_in_sys, _write, "/sys/block", 4096, 4),
    "names without a file": _cyclic(lambda: _word("/proc/sys/fs/dentry-state", 4), _miss, _SETTINGS, 2000, 4),
    "inode numbers of pipes": _cyclic(_pipe_inode, partial(_repeat, _pipe_inode), "fstat", 8192, 2),
    "inode numbers of memory files": _cyclic(_memfile_inode, partial(_repeat, _memfile_inode), "fstat", 8192, 2),
    "cookies of sockets": _cyclic(_cookie, partial(_repeat, _cookie), "getsockopt", 16384, 2)._replace(wall="seccomp"),
    "idle states": _cyclic(_idle_states, _nap, "/sys/devices/system/cpu", 200, 2),
    # amounts that a living worker holds
    "threads of the machine": Counter(_scaled(_hold_threads, 4), lambda _: _word("/proc/loadavg", 4), "/proc/loadavg"),
    "threads of the machine, by call": Counter(_scaled(_hold_threads, 4), lambda _: _sysinfo("H", 40), "sysinfo"),
    "memory of the control group": Counter(
        _scaled(_hold_memory, 8), lambda _: _word(_group_file(), 0), "/sys/fs/cgroup", 8
    ),
    "threads that run": Counter(_scaled(_hold_spinning, 16), _most_running, "/proc/loadavg", 2),
    "shared memory": Counter(_hold_shared, lambda _: _field(_MEMINFO, "Shmem"), _MEMINFO),
    "shared memory, by call": Counter(_hold_shared, lambda _: _sysinfo("Q", 6), "sysinfo"),
    "shared memory of a node": Counter(_hold_shared, lambda _: _node_shared(), "/sys/devices/system/node"),
    "promised memory": Counter(_scaled(_hold_promised, 16), lambda _: _field(_MEMINFO, "Committed_AS"), _MEMINFO),
    "free memory": Counter(_scaled(_hold_memory, 8), lambda _: _field(_MEMINFO, "MemFree"), _MEMINFO, 8),
    "free blocks of the disk": Counter(_scaled(_hold_blocks, 8), _free(_home, "f_bfree"), "statvfs"),
    "free inodes of the disk": Counter(_scaled(_hold_files, 8), _free(_home, "f_ffree"), "statvfs"),
    "free blocks of /dev/shm": Counter(_hold_shared, _free(_shm, "f_bfree"), "statvfs", wall=_OWN_SHM),
    "free inodes of /dev/shm": Counter(_hold_shared_files, _free(_shm, "f_ffree"), "statvfs", wall=_OWN_SHM),
    "open files": Counter(_scaled(_hold_open, 128), lambda _: _word("/proc/sys/fs/file-nr", 0), _SETTINGS, 8),
    "pages of the user's pipes": Counter(_hold_pipes, _pipe_size, "fcntl", 2),
    "signals queued for the user": Counter(_scaled(_hold_signals, 4), _queued, "/proc/self"),
    "file locks": Counter(_lock, lambda _: _lines("/proc/locks"), "/proc/locks", wall="seccomp"),
    "leases": Counter(_lease, lambda _: _lines("/proc/locks"), "/proc/locks", 2, wall="seccomp"),
    "keys": Counter(_add_keys, lambda _: _lines("/proc/keys"), "/proc/keys", wall="seccomp"),
    "abstract sockets": Counter(_listen, _find_listener, "connect", wall="network"),
    "mount ids": Counter(_mount, _mount_id, "/proc/self", wall="seccomp", harmless=False),
    "futexes in a file that both read": Counter(_wait_in_file, lambda place: _futex(place, 1, 1 << 30), "futex"),
    # properties of the other process
    "name of another process": Counter(_name, _read_name, "/proc/PID"),
    "nice value of another process": Counter(
        lambda _, number: os.nice(number),
        lambda _: os.getpriority(os.PRIO_PROCESS, _other()),
        "getpriority",
        wall="seccomp",
    ),
    "disk priority of another process": Counter(
        _set_ioprio,
        lambda _: _checked(_LIBC.syscall(_number("ioprio_get"), 1, _other())),
        "ioprio_get",
        8,
        wall="seccomp",
    ),
    "processor time of another process": Counter(_work, _clock_of_other, "clock_gettime", 4),
    # time
    "time of a loop": Counter(_busy, _loop_time, "a clock", 2),
    "own waiting time": Counter(_busy, _waited, "/proc/self", 2),
    "time of first reads": Counter(_bring, _read_times, "a clock", before=False),
    "page faults of first reads": Counter(_bring, _major_faults, "getrusage", before=False),
    "processor frequency": Counter(_busy, _frequency, "/proc/cpuinfo", 2, wall="none: constant on this machine"),
    "entropy": Counter(
        _scaled(_draw, 1 << 16),
        lambda _: _word("/proc/sys/kernel/random/entropy_avail", 0),
        _SETTINGS,
        wall="none: constant since Linux 5.18",
    ),
}


def _measured(name: str, place: Place, rounds: int, limit_s: float) -> dict[str, Any]:
    """Return the row of a counter: both variants, and those without the sandbox where a part of it is named."""
    counter = COUNTERS[name]
    row: dict[str, Any] = {"by": counter.by, "levels": counter.levels, "wall": counter.wall}
    variants = [("later", False, True), ("alive", True, True)]
    if counter.wall and counter.harmless:
        variants += [("unconfined", True, False)]
    for key, alive, confined in variants:
        found = measure(counter, place, rounds, alive=alive, confined=confined, limit_s=limit_s)
        row[key] = {**found._asdict(), "rate": found.rate}
        cell = f"{found.bits:.2f} bits {found.rate:9.1f} bits/s"
        sys.stdout.write(f"{name:34} {key:10} {cell} {found.rounds:4} rounds {found.problem}\n")
        sys.stdout.flush()
    return row


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def _load() -> float:
    return round(os.getloadavg()[0], 1)


def main() -> None:
    """Measure every counter, print a table, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100, help="exchanges for each counter and variant")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds for each series")
    parser.add_argument("--out", type=Path, default=Path("channels.json"), help="the record, as JSON")
    parser.add_argument("names", nargs="*", help="counters to measure anew in the record; all by default")
    asked = parser.parse_args()
    known: dict[str, Any] = {"load": [_load()], "counters": {}}
    if asked.names and asked.out.exists():
        known = json.loads(asked.out.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        place = make_place(Path(folder))
        rows = {name: _measured(name, place, asked.rounds, asked.limit) for name in asked.names or COUNTERS}
    record = {
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "kernel": platform.release().partition("-")[0],
        "level": attempt_escape().level,
        "rounds": asked.rounds,
        "load": [known["load"][0], _load()],
        "counters": {name: row for name in COUNTERS if (row := rows.get(name) or known["counters"].get(name))},
    }
    asked.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
