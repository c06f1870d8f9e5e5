"""Record which system calls honest kernels make behind a filter, for `calls-PLATFORM.txt`. Needs strace.

python -m tests.processes.sandbox.recorded_calls --platform cpu
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from pathlib import Path

from arena.processes.python_child import python_module
from arena.task.corpus.task_folder import TASKS

PLACE = Path(__file__).parent
KERNELS = (
    "triton2triton/normalization/rms_norm/kernel.py",
    "triton2triton/moe/fused_moe/kernel.py",
    "hip2hip/modules/gelu/kernel.hip",
    "hip2hip/modules/layer_normalization/kernel.hip",
)
IN_VAIN = frozenset({"clone3"})
"""libraries then take the older way"""
_FILTERED = re.compile(r"^seccomp\(SECCOMP_SET_MODE_FILTER", re.MULTILINE)
_CALL = re.compile(r"^(\w+)\(", re.MULTILINE)
_STARTED = re.compile(r"^v?(?:fork|clone)3?\(.*= (\d+)$", re.MULTILINE)


def calls(folder: Path) -> set[str]:
    """Return what processes called behind their filters, and all that these started; a file of strace each."""
    texts = {file.suffix[1:]: file.read_text(errors="replace") for file in folder.iterdir()}
    filtered = {pid: _FILTERED.split(text) for pid, text in texts.items()}
    behind = {pid: parts[-1].partition("\n")[2] for pid, parts in filtered.items() if len(parts) > 1}
    waiting = list(behind)
    while waiting:
        for pid in _STARTED.findall(behind[waiting.pop()]):
            if pid in texts and pid not in behind:
                behind[pid] = texts[pid]
                waiting.append(pid)
    return {name for text in behind.values() for name in _CALL.findall(text)}


def recorded(platform: str) -> list[str]:
    """Return the calls known of a platform."""
    return (PLACE / f"calls-{platform}.txt").read_text(encoding="utf-8").split()


def main() -> None:
    """Evaluate each kernel under strace, and write what was called."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", default="cpu")
    platform = parser.parse_args().platform
    kept, found = PLACE / f"calls-{platform}.txt", set[str]()
    for kernel in KERNELS:
        task = kernel.rpartition("/")[0]
        judged = python_module("arena", "evaluate", task, str(TASKS / kernel), "--platform", platform)
        with tempfile.TemporaryDirectory() as place:
            strace = ["strace", "-ff", "-qq", "--seccomp-bpf", "-o", f"{place}/of"]
            code = subprocess.run([*strace, *judged, "--effort", "screen", "--seeds", "1"], check=False).returncode
            if code not in (0, 1):  # strace slows, and a slow kernel may fail
                raise SystemExit(f"{task}: `arena evaluate` ended with {code}")
            found |= calls(Path(place))
        kept.write_text("\n".join(sorted(found)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
