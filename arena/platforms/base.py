"""What a platform offers to judge and worker: facts, buffers that two processes share, and a device-wide wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from arena.processes.protocol import Handle
from arena.results.environment import DeviceFacts

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Memory:
    """A device's memory in bytes, as its runtime counts it."""

    free_bytes: int
    total_bytes: int


class SharedBuffer(Protocol):
    """Memory that judge and worker both see, as one flat uint8 tensor."""

    tensor: torch.Tensor
    handle: Handle
    file: int | None

    def close(self) -> None:
        """Give the memory (or this process's view of it) back."""


class Platform(Protocol):
    """One kind of device. Vendor words stop here."""

    name: str
    torch_device: str
    graphs: bool
    """whether passes can be captured as device graphs"""
    spins: bool
    """whether waiting processes should poll rather than sleep: worth it where a pass takes microseconds"""

    late_work_delays: bool
    """whether work that a process has left delays other processes' kernels; the judge measures it at its start"""

    def facts(self) -> DeviceFacts:
        """What is known of the device; may initialise it."""

    def memory(self) -> Memory:
        """Its memory, whoever holds it."""

    def multiprocessors(self) -> int:
        """How many SMs or compute units it has; on the CPU, cores."""

    def versions(self) -> dict[str, str]:
        """Versions of what belongs to the device and is no Python package, by name."""

    def remarks(self) -> tuple[str, ...]:
        """What is odd about it, one sentence each: sources that contradict each other."""

    def allocate(self, num_bytes: int, *, lasting: bool = False) -> SharedBuffer:
        """Memory of its own, never part of a pool, so that sharing it exports nothing else."""

    def open(self, handle: Handle, file: int | None) -> SharedBuffer:
        """The same memory in another process."""

    def restart_environment(self) -> dict[str, str] | None:
        """Variables for a new process, which may share buffers where this one cannot; None where none are known."""

    def synchronize(self) -> None:
        """Wait for all work of this process on the device; raises `RuntimeError` for a device fault."""

    def release_cached_memory(self) -> None:
        """Have some memory of the device free for other processes, if this one keeps some without using it."""

    def free_cache(self) -> None:
        """Give device memory that this process holds without using it back to others."""

    def wait_until_idle(self, timeout_s: float) -> bool:
        """Wait until work of other processes on the device has drained; False where it has not in time."""

    def fix_local_memory(self) -> None:
        """Give this process as much local memory a thread as any kernel needs, once, before its first kernel.

        Else it grows with the kernels that the process happens to run, and its layout with it.
        """

    def touch(self) -> None:
        """Issue next to nothing, without waiting for it."""

    def linger(self, cycles: int) -> None:
        """Start a kernel of one block that runs for so many cycles, and do not wait for it."""

    def launch_tiny_kernel(self) -> None:
        """Run next to nothing and wait, so that the device is switched to this process before a timed pass."""
