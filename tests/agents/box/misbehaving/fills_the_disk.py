# ruff: noqa
"""Writes as much as it can wherever it can: one large file, many files, deleted files, deep folders, memory folders."""

import contextlib
import json
import os
import signal
import sys
import time

MOST = int(sys.argv[1])
block = b"x" * (1 << 20)


def write(path: str, most: int) -> int:
    written = 0
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as file:
        while written < most:
            count = file.write(block)
            if not count:
                break
            written += count
    return written


signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
report: dict[str, object] = {"one_file": write("large", MOST)}
report["elsewhere"] = {
    place: write(place, 8 << 20)
    for place in ("/x", "/etc/x", "/usr/x", "/dev/x", "/arena/x", "/run/x", "/var/x", "/opt/x")
}
kept = open(os.path.expanduser("~/deleted"), "wb", buffering=0)
os.unlink(os.path.expanduser("~/deleted"))
with contextlib.suppress(OSError):
    for _ in range(8):
        kept.write(block)
with contextlib.suppress(OSError):
    for _ in range(40):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
print(json.dumps(report), flush=True)
time.sleep(60)
