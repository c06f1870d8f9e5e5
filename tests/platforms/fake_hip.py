"""A stand-in for hip-python: as much of `hip.hip` as `arena.platforms.rocm.hip_runtime` calls, on memory of the host.

Signatures and answers are those of hip-python's documentation: every call answers with a tuple, the error first.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from enum import IntEnum


class Code(IntEnum):
    """Answers of the HIP runtime."""

    hipSuccess = 0
    hipErrorInsufficientDriver = 35
    hipErrorNoDevice = 100
    hipErrorInvalidDevice = 101
    hipErrorInvalidImage = 200
    hipErrorNotFound = 500


class Kind(IntEnum):
    """Directions of a copy."""

    hipMemcpyHostToDevice = 1
    hipMemcpyDeviceToHost = 2


class Properties:
    """What `hipGetDeviceProperties` fills in."""

    name = b""
    gcnArchName = b""
    warpSize = 0
    totalGlobalMem = 0
    multiProcessorCount = 0
    l2CacheSize = 0


@dataclass
class FakeHip:
    """The module `hip.hip`. A code object is right that begins with `image`, and holds one kernel, `kernel`.

    With `fills_in`, hipGetDeviceProperties takes the structure, as before hip-python 10.
    """

    count: int = 1
    count_code: Code = Code.hipSuccess
    properties_code: Code = Code.hipSuccess
    raises: Exception | None = None
    name: bytes = b"AMD Instinct MI300X"
    arch: bytes = b"gfx942:sramecc+:xnack-"
    warp_size: int = 64
    memory_bytes: int = 192 << 30
    fills_in: bool = True
    image: bytes = b"\x7fELF"
    kernel: bytes = b"probe"
    calls: list[str] = field(default_factory=list)
    hipError_t = Code
    hipMemcpyKind = Kind
    hipDeviceProp_t = Properties

    def hipGetDeviceCount(self) -> tuple[Code, int]:
        if self.raises is not None:
            raise self.raises
        return self.count_code, self.count

    def hipGetDeviceProperties(self, *arguments: object) -> tuple[Code, *tuple[Properties, ...]]:
        if len(arguments) != (2 if self.fills_in else 1):
            raise TypeError("hipGetDeviceProperties() takes another number of arguments")
        assert arguments[-1] == 0
        properties = arguments[0] if self.fills_in else Properties()
        assert isinstance(properties, Properties)
        properties.name, properties.gcnArchName, properties.warpSize = self.name, self.arch, self.warp_size
        properties.totalGlobalMem, properties.multiProcessorCount = self.memory_bytes, 304
        properties.l2CacheSize = 4 << 20
        return (self.properties_code,) if self.fills_in else (self.properties_code, properties)

    def hipRuntimeGetVersion(self) -> tuple[Code, int]:
        return Code.hipSuccess, 70051831

    def hipModuleLoadData(self, image: bytearray) -> tuple[Code, object]:
        right = bytes(image).startswith(self.image)
        return (Code.hipSuccess, "module") if right else (Code.hipErrorInvalidImage, None)

    def hipModuleGetFunction(self, module: object, kname: bytes) -> tuple[Code, object]:
        assert module == "module"
        return (Code.hipSuccess, "function") if kname == self.kernel else (Code.hipErrorNotFound, None)

    def hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
        self, f: object, blockSize: int, dynSharedMemPerBlk: int
    ) -> tuple[Code, int]:
        assert f == "function" and dynSharedMemPerBlk == 0
        return Code.hipSuccess, 2048 // blockSize

    def hipMalloc(self, size: int) -> tuple[Code, ctypes.Array[ctypes.c_char]]:
        return Code.hipSuccess, ctypes.create_string_buffer(size)

    def hipMemcpy(self, dst: object, src: object, sizeBytes: int, kind: Kind) -> tuple[Code]:
        assert isinstance(dst, bytearray) == (kind is Kind.hipMemcpyDeviceToHost)
        memoryview(dst).cast("B")[:] = memoryview(src).cast("B")  # type: ignore[arg-type]
        assert len(memoryview(src).cast("B")) == sizeBytes  # type: ignore[arg-type]
        return (Code.hipSuccess,)

    def hipModuleLaunchKernel(
        self,
        f: object,
        gridDimX: int,
        gridDimY: int,
        gridDimZ: int,
        blockDimX: int,
        blockDimY: int,
        blockDimZ: int,
        sharedMemBytes: int,
        stream: object,
        kernelParams: object,
        extra: tuple[ctypes.Array[ctypes.c_char], ctypes.Array[ctypes.c_char], ctypes.c_int64],
    ) -> tuple[Code]:
        """The probe kernel: y is x and one more, but y[0] the lanes of a wave."""
        assert (f, sharedMemBytes, stream, kernelParams) == ("function", 0, None, None)
        x, y, count = extra
        assert gridDimX * blockDimX == count.value and {gridDimY, gridDimZ, blockDimY, blockDimZ} == {1}
        numbers = memoryview(x).cast("B").cast("i")
        into = memoryview(y).cast("B").cast("i")
        for index in range(count.value):
            into[index] = numbers[index] + 1 if index else self.warp_size
        return (Code.hipSuccess,)

    def hipDeviceSynchronize(self) -> tuple[Code]:
        self.calls.append("hipDeviceSynchronize")
        return (Code.hipSuccess,)

    def hipFree(self, ptr: object) -> tuple[Code]:
        self.calls.append("hipFree")
        return (Code.hipSuccess,)

    def hipModuleUnload(self, module: object) -> tuple[Code]:
        self.calls.append("hipModuleUnload")
        return (Code.hipSuccess,)
