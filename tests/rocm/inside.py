"""Start the device process on the simulated machine, then a command: `python -m tests.rocm.inside COMMAND…`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_OBJDUMP = "/usr/lib/llvm-21/bin/llvm-objdump"
_CODE = "/root/.cache/rocm-sim-code"
LAUNCHES = Path("/tmp/rocm-sim-launches")
_SOCKET = Path("/dev/kfd")
_RENDER_NODE = Path("/dev/dri/renderD128")
_KEEPS_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}
"""arrays of the executor are not given back to Linux after each instruction: a third less processor time"""


def main(command: Sequence[str]) -> int:
    """Return the exit code of the command; the device process ends with it."""
    device = subprocess.Popen(
        [sys.executable, "-P", "-m", "tests.rocm.device", str(_SOCKET), _OBJDUMP, _CODE, str(LAUNCHES)],
        stdout=subprocess.PIPE,
        env={**os.environ, **_KEEPS_MEMORY},
    )
    try:
        assert device.stdout is not None
        if device.stdout.readline() != b"listening\n":
            raise SystemExit("the device process did not start")
        _RENDER_NODE.touch()
        return subprocess.run(command, check=False).returncode
    finally:
        device.kill()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
