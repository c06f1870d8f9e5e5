"""Write the files by which the kernel describes an AMD GPU to ROCr: `python -m tests.rocm.topology FOLDER`.

Names of the properties: kfd_topology.c of Linux. Numbers of an MI300X in SPX: AMD's data sheet (304 compute units,
eight dies with 4 MiB of L2 each, 256 MiB of Infinity Cache, 192 GB at 8192 bits), CDNA3 ISA guide (LDS, waves).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

GPU_ID = 4660
"""the driver's number of the device, see driver/driver.h"""
KFD = Path("devices/virtual/kfd/kfd/topology")
MODULE = Path("module/amdgpu/initstate")
RENDER_MINOR = 128
_SYSTEM_MEMORY, _VISIBLE_MEMORY = 0, 1
"""HSA_HEAPTYPE_SYSTEM and HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC of hsakmttypes.h"""
_PCI_EXPRESS = 2
_DATA_CACHE_OF_COMPUTE = 0b1001
_CAPABILITIES = 745496192
"""HSA_CAPABILITY of hsakmttypes.h, as an MI300X has it: doorbells of type 2, coherent host access, memory faults"""

Numbers = Mapping[str, int]


@dataclass(frozen=True)
class Gpu:
    """A device, as far as ROCr reads it. Sizes in bytes."""

    arch: str
    device_id: int
    compute_units: int
    dies: int
    """that compute; each with an L2 of its own"""
    memory_bytes: int
    l2_bytes: int
    cache_bytes: int
    wave_size: int = 64

    @property
    def target_version(self) -> int:
        """Return 90402 for gfx942: major version, minor and stepping, two decimal digits each; they are hexadecimal."""
        digits = self.arch.removeprefix("gfx")
        return int(digits[:-2]) * 10000 + int(digits[-2], 16) * 100 + int(digits[-1], 16)


MI300X = Gpu("gfx942", 0x74A1, 304, 8, 206141652992, 4 << 20, 256 << 20)


def files(gpu: Gpu = MI300X, host_bytes: int = 16 << 30) -> dict[Path, str]:
    """Return the text of every file by its place below /sys."""
    nodes = KFD / "nodes"
    found = {
        MODULE: "live\n",
        KFD / "generation_id": "1\n",
        KFD / "system_properties": _lines({"platform_oem": 0, "platform_id": 0, "platform_rev": 0}),
        nodes / "0/gpu_id": "0\n",
        nodes / "0/name": "\n",
        nodes / "0/properties": _lines(_processor()),
        nodes / "0/mem_banks/0/properties": _lines(_memory(_SYSTEM_MEMORY, host_bytes, 64, 2400)),
        nodes / "1/gpu_id": f"{GPU_ID}\n",
        nodes / "1/name": f"{gpu.arch}\n",
        nodes / "1/properties": _lines(_device(gpu)),
        nodes / "1/mem_banks/0/properties": _lines(_memory(_VISIBLE_MEMORY, gpu.memory_bytes, 8192, 1300)),
    }
    for node in (0, 1):
        found[nodes / str(node) / "io_links/0/properties"] = _lines(_link(node, 1 - node))
    caches = ((1, 32 << 10, 64), (2, gpu.l2_bytes, 16), (3, gpu.cache_bytes, 16))
    for number, (level, num_bytes, ways) in enumerate(caches):
        found[nodes / f"1/caches/{number}/properties"] = _lines(_cache(level, num_bytes, ways))
    return found


def write(root: Path, gpu: Gpu = MI300X) -> None:
    """Write all files below `root`, which a simulated machine sees as /sys."""
    for place, text in files(gpu).items():
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")


def _lines(properties: Numbers) -> str:
    return "".join(f"{name} {value}\n" for name, value in properties.items())


def _processor() -> Numbers:
    return {
        "cpu_cores_count": 2,
        "simd_count": 0,
        "mem_banks_count": 1,
        "caches_count": 0,
        "io_links_count": 1,
        "p2p_links_count": 0,
        "cpu_core_id_base": 0,
        "simd_id_base": 0,
        "max_waves_per_simd": 0,
        "lds_size_in_kb": 0,
        "gds_size_in_kb": 0,
        "wave_front_size": 0,
        "gfx_target_version": 0,
        "vendor_id": 0,
        "device_id": 0,
        "location_id": 0,
        "domain": 0,
        "drm_render_minor": 0,
        "max_engine_clk_ccompute": 2000,
    }


def _device(gpu: Gpu) -> Numbers:
    per_die = gpu.compute_units // gpu.dies
    return {
        "cpu_cores_count": 0,
        "simd_count": 4 * gpu.compute_units,
        "mem_banks_count": 1,
        "caches_count": 3,
        "io_links_count": 1,
        "p2p_links_count": 0,
        "cpu_core_id_base": 0,
        "simd_id_base": 1 << 31,
        "max_waves_per_simd": 8,
        "lds_size_in_kb": 64,
        "gds_size_in_kb": 0,
        "num_gws": 64,
        "wave_front_size": gpu.wave_size,
        "array_count": 4 * gpu.dies,
        "simd_arrays_per_engine": 1,
        "cu_per_simd_array": -(-per_die // 4),
        "simd_per_cu": 4,
        "max_slots_scratch_cu": 32,
        "gfx_target_version": gpu.target_version,
        "vendor_id": 0x1002,
        "device_id": gpu.device_id,
        "location_id": 1280,
        "domain": 0,
        "drm_render_minor": RENDER_MINOR,
        "hive_id": 0,
        "num_sdma_engines": 2,
        "num_sdma_xgmi_engines": 14,
        "num_sdma_queues_per_engine": 8,
        "num_cp_queues": 24,
        "max_engine_clk_fcompute": 2100,
        "local_mem_size": gpu.memory_bytes,
        "fw_version": 177,
        "capability": _CAPABILITIES,
        "debug_prop": 1495,
        "sdma_fw_version": 24,
        "unique_id": 1,
        "num_xcc": gpu.dies,
        "max_engine_clk_ccompute": 2000,
    }


def _memory(heap: int, num_bytes: int, width: int, clock: int) -> Numbers:
    return {"heap_type": heap, "size_in_bytes": num_bytes, "flags": 0, "width": width, "mem_clk_max": clock}


def _link(start: int, end: int) -> Numbers:
    return {
        "type": _PCI_EXPRESS,
        "version_major": 0,
        "version_minor": 0,
        "node_from": start,
        "node_to": end,
        "weight": 20,
        "min_latency": 0,
        "max_latency": 0,
        "min_bandwidth": 312,
        "max_bandwidth": 32000,
        "recommended_transfer_size": 0,
        "recommended_sdma_engine_id_mask": 0,
        "flags": 1,
    }


def _cache(level: int, num_bytes: int, ways: int) -> Numbers:
    return {
        "processor_id_low": 0,
        "level": level,
        "size": num_bytes >> 10,
        "cache_line_size": 128,
        "cache_lines_per_tag": 1,
        "association": ways,
        "latency": 0,
        "type": _DATA_CACHE_OF_COMPUTE,
        "sibling_map": 1,
    }


if __name__ == "__main__":
    write(Path(sys.argv[1]))
