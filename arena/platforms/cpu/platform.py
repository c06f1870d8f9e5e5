"""The CPU platform: kernels run emulated, memory is sealed shared memory, latencies are those of the emulation."""

from __future__ import annotations

import mmap
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from arena.platforms.base import Memory, SharedBuffer
from arena.processes.protocol import Handle
from arena.processes.scratch import sealed_memory
from arena.results.environment import DeviceFacts

if TYPE_CHECKING:
    import torch


class MemoryFile:
    """A sealed memfd mapped into this process; neither side can resize it under the other."""

    def __init__(self, file: int, num_bytes: int) -> None:
        import torch

        self.file: int | None = file
        self.handle = Handle(num_bytes)
        self._map = mmap.mmap(file, num_bytes)
        self.tensor: torch.Tensor = torch.frombuffer(self._map, dtype=torch.uint8)

    def close(self) -> None:
        """Drop the descriptor; the mapping goes with the last tensor that views it."""
        if self.file is not None:
            os.close(self.file)
            self.file = None


class CpuPlatform:
    """Triton through its interpreter, HIP through this project's header; always there."""

    name = "cpu"
    torch_device = "cpu"
    graphs = False
    spins = False
    late_work_delays = True

    def __init__(self, wave_size: int = 32) -> None:
        self._wave_size = wave_size

    def facts(self) -> DeviceFacts:
        """The processor's name and memory; no peaks, since an emulation has no roofline."""
        return DeviceFacts(
            platform="cpu",
            vendor="cpu",
            arch="cpu",
            name=_processor(),
            wave_size=self._wave_size,
            memory_bytes=self.memory().total_bytes,
            last_level_cache_bytes=0,
            driver=platform.release(),
        )

    def memory(self) -> Memory:
        """The machine's memory; free is what no process has taken and no file is cached in."""
        page_bytes = os.sysconf("SC_PAGE_SIZE")
        return Memory(page_bytes * os.sysconf("SC_AVPHYS_PAGES"), page_bytes * os.sysconf("SC_PHYS_PAGES"))

    def multiprocessors(self) -> int:
        """Cores."""
        return os.cpu_count() or 1

    def versions(self) -> dict[str, str]:
        """Nothing beyond the Python packages."""
        return {}

    def remarks(self) -> tuple[str, ...]:
        """There is one source."""
        return ()

    def allocate(self, num_bytes: int, *, lasting: bool = False) -> SharedBuffer:
        """A new sealed memory file of zeros."""
        return MemoryFile(sealed_memory("buffer", num_bytes), num_bytes)

    def open(self, handle: Handle, file: int | None) -> SharedBuffer:
        """Map a memory file that came over the socket."""
        if file is None:
            raise ValueError("a CPU buffer travels as a file descriptor")
        return MemoryFile(file, handle.num_bytes)

    def restart_environment(self) -> dict[str, str] | None:
        """There is one way of sharing memory files."""
        return None

    def synchronize(self) -> None:
        """Nothing runs behind our back on the CPU."""

    def release_cached_memory(self) -> None:
        """Nothing is kept, either."""

    def free_cache(self) -> None:
        """The allocator of the CPU holds nothing back."""

    def wait_until_idle(self, timeout_s: float) -> bool:
        """There is no queue behind which others' work could hide."""
        return True

    def fix_local_memory(self) -> None:
        """A processor's threads have stacks, which kernels do not share."""

    def touch(self) -> None:
        """There is no device to touch."""

    def linger(self, cycles: int) -> None:
        """Nothing runs behind our back on the CPU."""

    def launch_tiny_kernel(self) -> None:
        """There is no device to switch."""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
