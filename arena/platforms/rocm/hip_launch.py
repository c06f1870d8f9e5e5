"""One kernel of a code object, loaded and launched by hip-python in a process of its own.

So the path from this project's compilers to the device is tried without PyTorch, and without clang's host code.
`python -m arena.platforms.rocm.hip_launch FILE CODE KERNEL` writes what came back.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from arena.platforms.rocm.hip_python import in_child
from arena.platforms.rocm.hip_runtime import HipError, HipRuntime

ELEMENTS, THREADS = 4096, 256


@dataclass(frozen=True)
class LaunchSeen:
    """Result in y of launching a kernel (const int32 *x, int32 *y, int64 count); `problem` where none took place.

    `blocks`: how many of its blocks of 256 threads a compute unit holds at once, as the runtime says.
    """

    problem: str = ""
    blocks: int = 0
    output: tuple[int, ...] = ()


def launch_code_object(code: Path, kernel: str) -> LaunchSeen:
    """Launch over 4096 elements, x being 0, 1, 2 and so on, in a new process. Every failure is an answer."""
    seen, problem = in_child(__name__, (str(code), kernel), LaunchSeen)
    return seen or LaunchSeen(problem)


def launched(code: bytes, kernel: str) -> LaunchSeen:
    """Launch in this process. The device is asked for first, so that none is an answer of its own."""
    try:
        hip = HipRuntime()
        hip.device_count()
        module = hip.load(code)
        function = hip.function(module, kernel)
        blocks = hip.blocks_per_multiprocessor(function, THREADS)
        numbers = (ctypes.c_int32 * ELEMENTS)(*range(ELEMENTS))
        x, y = hip.upload(bytes(numbers)), hip.upload(bytes(ctypes.sizeof(numbers)))
        hip.launch(function, (ELEMENTS // THREADS, 1, 1), (THREADS, 1, 1), (x, y, ctypes.c_int64(ELEMENTS)))
        output = (ctypes.c_int32 * ELEMENTS).from_buffer_copy(hip.download(y, ctypes.sizeof(numbers)))
        for pointer in (x, y):
            hip.free(pointer)
        hip.unload(module)
        return LaunchSeen("", blocks, tuple(output))
    except HipError as problem:
        return LaunchSeen(str(problem))


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(msgspec.json.encode(launched(Path(sys.argv[2]).read_bytes(), sys.argv[3])))
