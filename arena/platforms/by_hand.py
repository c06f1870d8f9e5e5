"""Compile a HIP kernel by hand: headers and the command, for workspaces of agents and for dumped cases."""

from __future__ import annotations

from arena.platforms.cuda import hip_nvcc
from arena.platforms.rocm import hip_hipcc
from arena.platforms.toolchains.kernel_library import headers
from arena.platforms.toolchains.task_header import task_header
from arena.results.environment import DeviceFacts
from arena.task.definition import Case, Task

HEADER = "task.h"
INCLUDE, LIBRARY = "include", "headers"


def header_files(task: Task, case: Case, device: DeviceFacts) -> dict[str, str]:
    """Return the headers that a kernel may include, by relative path; `task.h` is for the dtypes of the case."""
    texts = {f"{LIBRARY}/{name}": text for name, text in headers().items()}
    texts[HEADER] = task_header(task.on(device.arch), case)
    if device.vendor == "nvidia":
        from arena.platforms.cuda.hip_nvcc_headers import header_set, runtime_names

        texts |= {f"{INCLUDE}/{name}": text for name, text in header_set(runtime_names()).items()}
    return texts


def compile_command(name: str, device: DeviceFacts) -> str:
    """Return how the judge compiles the file on a GPU, with `header_files` beside it; nothing for the emulation."""
    if device.emulated:
        return ""
    if device.vendor == "nvidia":
        flags = " ".join(hip_nvcc.FLAGS)
        return f"nvcc {flags} -arch={device.arch} -I{INCLUDE} -I. -I{LIBRARY} -x cu {name} -o kernel.so"
    return f"hipcc --offload-arch={device.arch} {' '.join(hip_hipcc.FLAGS)} -I. -I{LIBRARY} -x hip {name} -o kernel.so"
