# ruff: noqa
"""Signals, renices, limits and traces every process but itself. Arguments: ids of processes outside."""

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys

outside = [int(text) for text in sys.argv[1:]]
libc = ctypes.CDLL(None)
mine = {int(thread) for process in (os.getpid(), os.getppid(), 1) for thread in os.listdir(f"/proc/{process}/task")}
reached = []
for process in (set(outside) | set(range(2, 4000))) - mine:
    with contextlib.suppress(OSError):
        os.kill(process, signal.SIGTERM)
        reached.append(f"kill {process}")
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process, 19)
        reached.append(f"renice {process}")
for process in set(outside) - mine:
    with contextlib.suppress(OSError):
        resource.prlimit(process, resource.RLIMIT_CPU, (1, 1))
        reached.append(f"limit {process}")
    if libc.ptrace(16, process, 0, 0) == 0:
        reached.append(f"trace {process}")
with contextlib.suppress(OSError):
    os.killpg(int(sys.argv[1]), signal.SIGTERM)
    reached.append("group")
print(json.dumps({"reached": reached}), flush=True)
