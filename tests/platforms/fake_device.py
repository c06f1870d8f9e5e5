"""A stand-in for PyTorch's view of a GPU, and the devices that the tests are about."""

from __future__ import annotations

from dataclasses import dataclass, replace

from arena.platforms.base import Memory
from arena.platforms.device import TorchDevice

GIB = 1 << 30
MIB = 1 << 20

MI210 = TorchDevice("AMD Instinct MI210", "gfx90a", 64 * GIB, 8 * MIB, 104, 64, "sramecc+:xnack-")
MI300X = TorchDevice("AMD Instinct MI300X", "gfx942", 192 * GIB, 4 * MIB, 304, 64, "sramecc+:xnack-")
MI355X = TorchDevice("AMD Instinct MI355X", "gfx950", 288 * GIB, 4 * MIB, 256, 64, "sramecc+:xnack-")
RX_7900_XTX = TorchDevice("AMD Radeon RX 7900 XTX", "gfx1100", 24 * GIB, 6 * MIB, 48, 32)
RX_9070 = TorchDevice("AMD Radeon RX 9070", "gfx1201", 16 * GIB, 8 * MIB, 28, 32)
UNKNOWN = TorchDevice("AMD Radeon Graphics", "gfx1310", 8 * GIB, 2 * MIB, 8)
H200 = TorchDevice("NVIDIA H200", "sm_90", 140 * GIB, 60 * MIB, 132, 32)


@dataclass
class FakeDevice:
    """Implements `arena.platforms.device.DeviceProvider`."""

    device: TorchDevice
    free_bytes: int = GIB
    runtime: str = "7.0.51831"

    def describe(self) -> TorchDevice:
        return self.device

    def memory(self) -> Memory:
        return Memory(self.free_bytes, self.device.memory_bytes)

    def versions(self) -> dict[str, str]:
        return {"hip": self.runtime}


def silent(device: TorchDevice) -> TorchDevice:
    """The same device under a PyTorch that does not tell wave sizes."""
    return replace(device, wave_size=0)
