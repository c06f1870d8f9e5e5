"""A stand-in for hip-python: as much of `hip.hip` as the ROCm platform asks for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Code(IntEnum):
    """Answers of the HIP runtime."""

    hipSuccess = 0
    hipErrorInsufficientDriver = 35
    hipErrorNoDevice = 100
    hipErrorInvalidDevice = 101


class Properties:
    """What `hipGetDeviceProperties` fills in."""

    name = b""
    gcnArchName = b""
    warpSize = 0
    totalGlobalMem = 0


@dataclass
class FakeHip:
    """The module `hip.hip`."""

    count: int = 1
    count_code: Code = Code.hipSuccess
    properties_code: Code = Code.hipSuccess
    raises: Exception | None = None
    name: bytes = b"AMD Instinct MI300X"
    arch: bytes = b"gfx942:sramecc+:xnack-"
    warp_size: int = 64
    memory_bytes: int = 192 << 30
    hipError_t = Code
    hipDeviceProp_t = Properties

    def hipGetDeviceCount(self) -> tuple[Code, int]:
        if self.raises is not None:
            raise self.raises
        return self.count_code, self.count

    def hipGetDeviceProperties(self, properties: Properties, device: int) -> tuple[Code]:
        assert device == 0
        properties.name, properties.gcnArchName, properties.warpSize = self.name, self.arch, self.warp_size
        properties.totalGlobalMem = self.memory_bytes
        return (self.properties_code,)

    def hipRuntimeGetVersion(self) -> tuple[Code, int]:
        return Code.hipSuccess, 70051831
