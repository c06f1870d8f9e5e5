"""What hip-python says of AMD devices, asked in a process of its own.

hip-python loads the HIP runtime that it finds, which need not be the one that PyTorch brings: two runtimes in one
process disturb each other. And whatever happens there, a crash included, is an answer here.
`python -m arena.platforms.hip_python FILE` writes the answer.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from arena import process

_TIMEOUT_S = 60.0
_NO_DEVICE = "hipErrorNoDevice"


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


def ask_hip(environment: Mapping[str, str] | None = None) -> HipAnswer:
    """Ask in a new process, with PyTorch's own libraries at the end of the search path."""
    given = dict(os.environ if environment is None else environment)
    folders = [folder for folder in (given.get("LD_LIBRARY_PATH"), _torch_libraries()) if folder]
    given["LD_LIBRARY_PATH"] = os.pathsep.join(folders)
    given["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    with tempfile.TemporaryDirectory(prefix="arena-hip-") as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, "-m", __name__, str(answer)]
        done = process.run(command, timeout_s=_TIMEOUT_S, env=given)
        if not answer.is_file():
            how = "did not answer in time" if done.timed_out else f"ended with code {done.returncode}"
            return HipAnswer(0, f"hip-python {how}: {done.output.strip()[-300:]}")
        return msgspec.json.decode(answer.read_bytes(), type=HipAnswer)


def describe_hip() -> HipAnswer:
    """Ask in this process; every way of not having a device is an answer, not an exception."""
    try:
        hip: Any = import_module("hip").hip
    except (ImportError, AttributeError, RuntimeError, OSError) as problem:
        return HipAnswer(0, f"hip-python cannot be imported ({problem})")
    error, count = _ask(hip.hipGetDeviceCount)
    if error:
        return HipAnswer(0, f"no device ({error})" if error == _NO_DEVICE else error)
    if count == 0:
        return HipAnswer(0, "the HIP runtime sees no device")
    properties = hip.hipDeviceProp_t()
    error, _ = _ask(lambda: (*hip.hipGetDeviceProperties(properties, 0), 0))
    if error:
        return HipAnswer(0, error)
    return HipAnswer(
        devices=count,
        detail=properties.name.decode(),
        runtime=str(_ask(hip.hipRuntimeGetVersion)[1]),
        arch=properties.gcnArchName.decode().split(":", 1)[0],
        wave_size=int(properties.warpSize),
        memory_bytes=int(properties.totalGlobalMem),
    )


def _ask(function: object) -> tuple[str, int]:
    """Call a hip-python function that answers (error, value)."""
    assert callable(function)
    try:
        code, value = function()
    except (RuntimeError, OSError) as problem:
        return str(problem), 0
    return ("", int(value)) if int(code) == 0 else (str(getattr(code, "name", code)), 0)


def _torch_libraries() -> str:
    found = importlib.util.find_spec("torch")
    return str(Path(found.origin).parent / "lib") if found and found.origin else ""


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(msgspec.json.encode(describe_hip()))
