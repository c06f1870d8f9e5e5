"""What hip-python says of AMD devices, asked in a process of its own; and the names of HIP's errors.

hip-python loads the HIP runtime that it finds, which need not be the one that PyTorch brings: two runtimes in one
process disturb each other. And whatever happens there, a crash included, is an answer here.
`python -m arena.platforms.rocm.hip_python FILE` writes the answer.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from arena.platforms.rocm.hip_runtime import NO_DEVICE, HipError, HipRuntime
from arena.processes import process
from arena.processes.python_child import python_environment, python_module

Answer = TypeVar("Answer")
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class HipAnswer:
    """How many devices there are, or why none; of device 0 name, arch, wave size and memory.

    `runtime`: the version of the HIP runtime, as it numbers itself.
    """

    devices: int
    detail: str
    runtime: str = ""
    arch: str = ""
    wave_size: int = 0
    memory_bytes: int = 0
    multiprocessors: int = 0
    l2_bytes: int = 0


def ask_hip(environment: Mapping[str, str] | None = None) -> HipAnswer:
    """Ask in a new process."""
    answer, problem = in_child(__name__, (), HipAnswer, environment)
    return answer or HipAnswer(0, problem)


def in_child(
    module: str, arguments: Sequence[str], kind: type[Answer], environment: Mapping[str, str] | None = None
) -> tuple[Answer | None, str]:
    """Run `python -m module FILE arguments…`, with PyTorch's own libraries at the end of the search path.

    Returns:
        What it wrote to the file, or None and why it wrote nothing.
    """
    given = python_environment(os.environ if environment is None else environment)
    folders = [folder for folder in (given.get("LD_LIBRARY_PATH"), _torch_libraries()) if folder]
    given["LD_LIBRARY_PATH"] = os.pathsep.join(folders)
    with tempfile.TemporaryDirectory(prefix="arena-hip-") as folder:
        answer = Path(folder) / "answer.json"
        command = python_module(module, str(answer), *arguments)
        done = process.run(command, timeout_s=_TIMEOUT_S, env=given)
        if not answer.is_file():
            how = "did not answer in time" if done.timed_out else f"ended with code {done.returncode}"
            return None, f"hip-python {how}: {done.output.strip()[-300:]}"
        return msgspec.json.decode(answer.read_bytes(), type=kind), ""


def describe_hip() -> HipAnswer:
    """Ask in this process; every way of not having a device is an answer, not an exception."""
    try:
        hip = HipRuntime()
        count = hip.device_count()
        if count == 0:
            return HipAnswer(0, "the HIP runtime sees no device")
        seen = hip.properties()
        return HipAnswer(
            devices=count,
            detail=seen.name,
            runtime=hip.version(),
            arch=seen.arch,
            wave_size=seen.wave_size,
            memory_bytes=seen.memory_bytes,
            multiprocessors=seen.multiprocessors,
            l2_bytes=seen.l2_bytes,
        )
    except HipError as problem:
        return HipAnswer(0, f"no device ({problem})" if str(problem) == NO_DEVICE else str(problem))


def error_name(code: int) -> str:
    """Return the name of a HIP error; empty without hip-python. Reads a table of hip-python's and loads no library."""
    try:
        return HipRuntime().error_name(code)
    except HipError:
        return ""


def _torch_libraries() -> str:
    found = importlib.util.find_spec("torch")
    return str(Path(found.origin).parent / "lib") if found and found.origin else ""


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(msgspec.json.encode(describe_hip()))
