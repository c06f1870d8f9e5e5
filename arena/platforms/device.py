"""What PyTorch says of the device: asked in one way for ROCm and CUDA; where tests put another answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from arena.platforms.base import Memory


@dataclass(frozen=True)
class TorchDevice:
    """Device 0 of those visible, in PyTorch's words. Sizes in bytes; `wave_size` is 0 where PyTorch does not say.

    `features` are what AMD appends to the arch (`sramecc+:xnack-`); kernels built for the bare arch run with any.
    """

    name: str
    arch: str
    memory_bytes: int
    l2_bytes: int
    multiprocessors: int
    wave_size: int = 0
    features: str = ""


class DeviceProvider(Protocol):
    """Whoever knows the device."""

    def describe(self) -> TorchDevice:
        """Device 0; the first call initialises it in this process."""

    def memory(self) -> Memory:
        """Its memory, as the runtime counts it now."""

    def versions(self) -> dict[str, str]:
        """The runtime that PyTorch was built for, by name."""


class TorchProvider:
    """Asks PyTorch, which answers to `torch.cuda` on both vendors."""

    def describe(self) -> TorchDevice:
        """Device 0 of those that `HIP_VISIBLE_DEVICES` or `CUDA_VISIBLE_DEVICES` leave."""
        import torch

        properties = torch.cuda.get_device_properties(0)
        arch, features = f"sm_{properties.major}{properties.minor}", ""
        if torch.version.hip:
            arch, _, features = str(properties.gcnArchName).partition(":")
        return TorchDevice(
            name=properties.name,
            arch=arch,
            memory_bytes=properties.total_memory,
            l2_bytes=int(getattr(properties, "L2_cache_size", 0)),
            multiprocessors=properties.multi_processor_count,
            wave_size=int(getattr(properties, "warp_size", 0)),
            features=features,
        )

    def memory(self) -> Memory:
        """What `hipMemGetInfo` or `cudaMemGetInfo` says."""
        import torch

        free_bytes, total_bytes = torch.cuda.mem_get_info(0)
        return Memory(free_bytes, total_bytes)

    def versions(self) -> dict[str, str]:
        """`hip` or `cuda`."""
        import torch

        found = {"hip": torch.version.hip, "cuda": torch.version.cuda}
        return {name: version for name, version in found.items() if version}
