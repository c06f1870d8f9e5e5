"""Run a command on the simulated machine: `python -m tests.rocm.machine COMMAND…`.

Inside are the programs of `environment.sh`, this checkout and its Python at their own places, /sys of `topology.py`,
and /dev/kfd, at which the device process listens. Needs bubblewrap and root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.rocm import topology

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = "/usr/lib/rocm-sim/libkfd.so"
_PRELOAD = "/etc/ld.so.preload"
_SITE = Path(__file__).with_name("site")
_PRELOADED = "preloaded-libraries"
_ENVIRONMENT = {
    "HSA_ENABLE_SDMA": "0",  # copies are kernels, as the driver processes queues of packets alone
    "HSA_ENABLE_IPC_MODE_LEGACY": "0",  # as with Linux's own module, whose way of sharing the driver has
    "HSA_OVERRIDE_CPU_AFFINITY_DEBUG": "0",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
}


def environment_folder(variables: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that `environment.sh` fills."""
    cache = variables.get("XDG_CACHE_HOME") or str(Path(variables.get("HOME", "/root")) / ".cache")
    return Path(cache) / "unseen-arena" / "rocm-sim"


def missing() -> str:
    """Return why there is no simulated machine here; empty where there is one."""
    if not (environment_folder() / "ready").is_file():
        return "no simulated ROCm machine: run tests/rocm/environment.sh"
    if os.geteuid() != 0 or not shutil.which("bwrap"):
        return "the simulated ROCm machine needs root and bubblewrap"
    return ""


def command_line(command: Sequence[str], sys_folder: Path, variables: Mapping[str, str]) -> list[str]:
    """Return the command that runs `command` inside, without a device process."""
    folder = environment_folder()
    bound = [str(path) for path in (ROOT, *_python_folders())]
    given = {**_ENVIRONMENT, "PATH": "/usr/bin:/usr/sbin:/bin", "PYTHONPATH": f"{_SITE}:{ROOT}", **variables}
    return [
        *("bwrap", "--die-with-parent", "--unshare-pid", "--cap-add", "ALL", "--bind", str(folder / "root"), "/"),
        *("--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--ro-bind", str(sys_folder), "/sys"),
        *("--dir", "/dev/dri", "--ro-bind", str(sys_folder / _PRELOADED), _PRELOAD),
        *(part for path in bound for part in ("--bind", path, path)),
        *("--chdir", str(ROOT), "--clearenv"),
        *(part for name, value in given.items() for part in ("--setenv", name, value)),
        *("--", *command),
    ]


def _python_folders() -> list[Path]:
    """Return what this interpreter needs that the environment does not have."""
    own = Path(sys.prefix)
    base = Path(sys.base_prefix)
    if base == Path("/usr"):
        return [own, Path(sys.executable).resolve(), Path(sysconfig.get_path("stdlib"))]
    return [own, base]


def run(
    command: Sequence[str],
    variables: Mapping[str, str] | None = None,
    gpu: topology.Gpu = topology.MI300X,
    library: str = LIBRARY,
    **popen: object,
) -> subprocess.CompletedProcess[str]:
    """Run a command on a machine of its own, with a device process that ends with it. `library`: the driver."""
    with tempfile.TemporaryDirectory(prefix="rocm-sim-") as held:
        topology.write(Path(held), gpu)
        (Path(held) / _PRELOADED).write_text(f"{library}\n", encoding="ascii")
        inside = [sys.executable, "-P", "-m", "tests.rocm.inside", *command]
        return subprocess.run(command_line(inside, Path(held), variables or {}), check=False, text=True, **popen)  # type: ignore[call-overload, no-any-return]


if __name__ == "__main__":
    raise SystemExit(run(sys.argv[1:]).returncode)
