# ruff: noqa
"""Looks for a canary, and for the harness, through every path that it can think of. Arguments: paths of this machine.

Prints `{"seen": {how: what}}`: each entry is a leak. The canary is known by its shape only, so that finding our own
command line or this file is no find.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import importlib
import json
import os
import re
import socket
import stat
import struct
import subprocess
import sys
import zlib

CANARY = re.compile(rb"canary-[0-9a-f]{32}")
NAMES = ("heldout.yaml", "expert.py", "expert.hip")
MOST = 1 << 20
WANTED = sys.argv[1:]
seen: dict[str, str] = {}


def find_availability(how: str, path: str) -> None:
    """Read a file, also as a git object, and see whether the canary is in it."""
    with contextlib.suppress(OSError):
        if not stat.S_ISREG(os.stat(path).st_mode):
            return
        with open(path, "rb") as file:
            content = file.read(MOST)
        with contextlib.suppress(zlib.error):
            content += zlib.decompress(content)
        if CANARY.search(content):
            seen[how] = path


def paths() -> None:
    for path in WANTED:
        find_availability("absolute path", path)
        for name in ("link", "chain"):
            with contextlib.suppress(OSError):
                os.symlink(path, name)
            find_availability("symbolic link", name)
        with contextlib.suppress(OSError):
            os.link(path, "hard")
        find_availability("hard link", "hard")
        for above in ("..", "../..", "../../../../../../.."):
            find_availability("relative path", f"{above}{path}")
            find_availability("relative path from home", os.path.join(os.path.expanduser("~"), above + path))
        for process in [*os.listdir("/proc"), "self", "thread-self"]:
            for way in ("root", "cwd", "cwd/../..", "fd/0/..", "map_files", "task/1/root", "task/1/cwd"):
                find_availability(f"/proc/PID/{way}", f"/proc/{process}/{way}{path}")


def proc() -> None:
    for path in glob.glob("/proc/[0-9]*/*") + glob.glob("/proc/[0-9]*/fd/*") + glob.glob("/proc/[0-9]*/map_files/*"):
        if path.rsplit("/", 1)[1] in ("pagemap", "clear_refs", "kmsg"):
            continue
        with contextlib.suppress(OSError):
            if os.path.isdir(path) or stat.S_ISFIFO(os.stat(path).st_mode):
                continue
            with open(path, "rb") as file:
                if CANARY.search(file.read(MOST)):
                    seen["/proc"] = path


def find() -> None:
    """Everything that can be listed, but for the system's own folders and Python's, by name; the rest by content too."""
    system = ("/usr", "/proc", "/sys", "/opt", "/nix", "/gnu", sys.prefix, sys.base_prefix)
    for folder, folders, files in os.walk("/"):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in ("/proc", "/sys")]
        for name in files:
            path = os.path.join(folder, name)
            if name in NAMES and "/site-packages/" not in path:
                seen["find by name"] = path
            if not path.startswith(system):
                find_availability("find by content", path)


def harness() -> None:
    for name in ("arena", "arena.judge.evaluate", "arena.task.corpus"):
        with contextlib.suppress(ImportError):
            seen["import"] = str(importlib.import_module(name))
    for python in ("python", "python3", sys.executable):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run([python, "-c", "import arena.errors"], capture_output=True, timeout=20)
            if done.returncode == 0:
                seen["import by another python"] = python
    for folder in sys.path:
        for path in glob.glob(os.path.join(folder, "*.pth")) + glob.glob(os.path.join(folder, "__editable__*")):
            with contextlib.suppress(OSError, UnicodeDecodeError):
                for line in open(path, encoding="utf-8").read().split():
                    if os.path.isdir(os.path.join(line, "arena", "judge")):
                        seen["a .pth file leads to the harness"] = line


def mounts() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    here = os.path.abspath("mnt")
    os.makedirs(here, exist_ok=True)
    hidden = {os.path.dirname(path).encode() for path in WANTED} | {b"/tmp", b"/", b"/proc", b"/usr", b"/proc/sys"}
    for before in (0, 0x10000000, 0x10000000 | 0x00020000):  # none, a user namespace, and a mount namespace with it
        pid = os.fork()
        if pid == 0:
            libc.unshare(before)
            for place in sorted(hidden):
                if libc.umount2(place, 2) == 0:  # MNT_DETACH
                    os._exit(10)
            for kind in (b"proc", b"sysfs", b"ext4", b"overlay", b"cgroup2", b"devtmpfs"):
                if libc.mount(b"none", here.encode(), kind, 0, None) == 0:
                    os._exit(11)
            if libc.mount(None, b"/", None, 0x20, None) == 0 or libc.mount(None, b"/usr", None, 0x1020, None) == 0:
                os._exit(12)  # remounted for writing
            if libc.chroot(b"/proc/1/root/..") == 0:
                os._exit(13)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code:
            seen[f"mounts after unshare({before:#x})"] = str(code)
    for process in ("1", str(os.getppid())):
        for name in ("mnt", "pid", "user", "net"):
            with contextlib.suppress(OSError):
                number = os.open(f"/proc/{process}/ns/{name}", os.O_RDONLY)
                if libc.setns(number, 0) == 0:
                    seen["setns"] = f"{process} {name}"
    # The classic way out of containers: a file by its handle, the root folder's being inode 2.
    handle = struct.pack("Ii8s", 8, 1, struct.pack("II", 2, 0))
    number = libc.syscall(304, os.open(".", os.O_RDONLY), handle, 0)
    if number >= 0:
        seen["open_by_handle_at"] = str(os.listdir(number))


def kernel() -> None:
    """Settings of the whole machine, which the files' owner could change if the mount let it."""
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness", "/proc/sys/kernel/modprobe"):
        with contextlib.suppress(OSError):
            with open(path, encoding="ascii") as file:
                text = file.read()
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            seen["kernel setting"] = path
    for path in ("/proc/sysrq-trigger", "/proc/kcore", "/proc/kmsg", "/dev/kmsg", "/dev/mem", "/dev/vda", "/dev/sda"):
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_WRONLY if "sysrq" in path else os.O_RDONLY | os.O_NONBLOCK))
            if stat.S_ISCHR(os.stat(path).st_mode) and os.major(os.stat(path).st_rdev) == 1:
                if os.minor(os.stat(path).st_rdev) == 3:
                    continue  # it is /dev/null
            seen["kernel file"] = path


def sockets() -> None:
    for folder in (os.environ.get("ARENA_TOOLS", "/arena"), "/run", "/var/run", "/tmp"):
        for path in glob.glob(f"{folder}/**", recursive=True):
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as one:
                one.settimeout(2)
                one.connect(path)
                for name in WANTED:
                    one.sendall(f"GET file://{name} HTTP/1.1\r\n\r\n".encode())
                if CANARY.search(one.recv(MOST)):
                    seen["socket"] = path


for part in (paths, proc, find, harness, mounts, kernel, sockets):
    part()
print(json.dumps({"seen": seen}), flush=True)
