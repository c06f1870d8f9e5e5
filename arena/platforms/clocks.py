"""Fixed clocks of GPUs while they are measured: `--lock-clocks` of `arena run` and `arena doctor --timing`."""

from __future__ import annotations

import re
import shlex
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from arena.errors import UsageError
from arena.platforms.condition import condition
from arena.platforms.smi import TIMEOUT_S
from arena.processes import process

_REFUSED = re.compile(r"not.supported|permission|elevation|unable to|treating as warning", re.IGNORECASE)
"""`nvidia-smi` and `amd-smi` may say so and exit with 0"""


@contextmanager
def locked_clocks(platform: str, devices: Sequence[int | None], told: Callable[[str], None]) -> Iterator[None]:
    """Lock the clocks of visible GPUs at their greatest, and reset them at the end, also after an interrupt.

    Args:
        platform: `auto`, `cuda` or `rocm`.
        devices: numbers among the visible GPUs; None is the first.
        told: receives a line for each GPU, with the command that resets it.

    Raises:
        UsageError: the clocks of a GPU cannot be locked; those locked before are reset.
    """
    with ExitStack() as stack:
        for device in devices:
            stack.enter_context(_locked(platform, device, told))
        yield


@contextmanager
def _locked(platform: str, device: int | None, told: Callable[[str], None]) -> Iterator[None]:
    seen = condition(platform, device)
    if seen is None or not seen.lock_command:
        raise UsageError(
            f"--lock-clocks: the greatest clock of GPU {device or 0} is not known on platform {platform}; "
            "nvidia-smi or amd-smi must name it; or leave the option out"
        )
    held = True
    try:
        problem = _problem(seen.lock_command)
        if problem:
            held = False
            raise UsageError(
                f"--lock-clocks: `{seen.lock_command}` failed: {problem}; it needs root; or leave the option out"
            )
        told(f"clocks locked at {seen.most_mhz:.0f} MHz; if this command is killed: `{seen.reset_command}`")
        yield
    finally:
        if held and (left := _uninterrupted(seen.reset_command)):
            told(f"warning: the clocks are still locked: {left}; run `{seen.reset_command}`")


def _uninterrupted(command: str) -> str:
    """Run a command that a second Ctrl-C does not stop; return what went wrong."""
    if threading.current_thread() is not threading.main_thread():
        return _problem(command)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return _problem(command)
    finally:
        signal.signal(signal.SIGINT, before)


def _problem(command: str) -> str:
    """Run a command; return what went wrong, empty if nothing."""
    try:
        finished = process.run(shlex.split(command), timeout_s=TIMEOUT_S)
    except OSError as error:
        return str(error)
    if finished.ok and not _REFUSED.search(finished.output):
        return ""
    lines = [line.strip() for line in finished.output.splitlines() if line.strip()]
    refused = next((line for line in lines if _REFUSED.search(line)), lines[0] if lines else "")
    return refused or (f"no answer in {TIMEOUT_S:.0f} s" if finished.timed_out else f"exit code {finished.returncode}")
