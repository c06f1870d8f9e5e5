"""What the first launch of a Triton kernel costs in each worker, warm as they are forked, and cold.

    python tools/first_launch.py --platform cuda

Forks processes as workers are, but outside of the sandbox. Each wakes the device, loads a task's own kernel, calls it
on one shape twice and on another once, and prints milliseconds of each. The first process fills Triton's cache and
prints nothing. `cold` is without `cross.triton.warm`, but with Triton's hash of itself, which comes with it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from arena.platforms.base import Platform  # noqa: E402
from arena.platforms.cross import triton as triton_cross  # noqa: E402
from arena.processes.protocol import Language, Load  # noqa: E402
from arena.worker.fork_server import ready_device  # noqa: E402
from arena.worker.loaders import load  # noqa: E402

KERNEL = ROOT / "tasks/triton2triton/normalization/rms_norm/kernel.py"
ROWS, WIDTHS = 64, (1024, 1024, 1000)
REPETITIONS = 3


def launches(device: Platform) -> list[float]:
    """Return the milliseconds that waking the device, loading, and each call take in this process."""
    import torch

    taken: list[float] = []

    def timed(work: Callable[[], object]) -> None:
        began = time.perf_counter()
        work()
        device.synchronize()
        taken.append((time.perf_counter() - began) * 1e3)

    timed(device.launch_tiny_kernel)
    entries: list[Any] = []
    timed(lambda: entries.append(load(Load(Language.TRITON, str(KERNEL), "rms_norm"), device.torch_device)))
    for width in WIDTHS:
        x, y = (torch.empty(ROWS, width, device=device.torch_device).fill_(1.0) for _ in range(2))
        weight = torch.empty(width, device=device.torch_device).fill_(1.0)
        timed(partial(entries[0]._function, x, weight, 1e-6, y))
    return taken


def in_fork(device: Platform, label: str) -> None:
    """Print a line of `launches` in a process of its own; nothing without a label."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            taken = launches(device)
            if label:
                print(f"{label:6}", " ".join(f"{milliseconds:10.1f}" for milliseconds in taken), flush=True)
            code = 0
        except BaseException:  # nothing of this process's is left to say it after `_exit`
            traceback.print_exc()
        finally:
            os._exit(code)
    if os.waitpid(pid, 0)[1]:
        raise SystemExit("a process failed; what it said is above")


def main() -> None:
    """Measure both in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", default="cuda", help="cuda or rocm")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        warm = triton_cross.warm
        triton_cross.warm = triton_cross._hash_triton
        device = ready_device(asked.platform)
        print("           device       load  first call     second other shape (ms)")
        in_fork(device, "")
        for _ in range(REPETITIONS):
            in_fork(device, "cold")
        warm()
        for _ in range(REPETITIONS):
            in_fork(device, "warm")


if __name__ == "__main__":
    main()
