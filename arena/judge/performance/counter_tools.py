"""rocprofv3 and Nsight Compute: how each is called, what its files say, and what to do where it refuses.

Command lines and columns follow the tools' documentation: rocprofiler-sdk, "Using rocprofv3" (input text, files
`counter_collection.csv` and `kernel_trace.csv`) and its counter_defs.yaml; NVIDIA, "Nsight Compute CLI" (`--csv`,
`--page raw`, metric names). Formulas of rocprof-compute: L2 bandwidth is 128 bytes for each TCC request.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from arena.processes.printable import printable
from arena.results.profile import Counters

_CDNA_PASSES = (
    ("OccupancyPercent", "VALUBusy", "SALUBusy", "MfmaUtil"),
    ("SQ_LDS_BANK_CONFLICT", "SQ_LDS_IDX_ACTIVE"),
    ("FETCH_SIZE",),
    ("WRITE_SIZE", "TCC_REQ_sum"),
)
"""what the counters of a block of the chip allow in one run each, on gfx942"""
_RDNA_PASSES = (
    ("OccupancyPercent",),
    ("SQC_LDS_BANK_CONFLICT", "SQC_LDS_IDX_ACTIVE"),
    ("FETCH_SIZE",),
    ("WRITE_SIZE",),
)
"""counter_defs.yaml has none there of busy units and of requests to the L2"""
_ROCM_MEANS = frozenset(_CDNA_PASSES[0])
_BLIT = "__amd_rocclr_"
"""how the names of kernels begin by which the runtime itself copies and fills"""
_CONFLICTING = ("SQ_LDS_BANK_CONFLICT", "SQC_LDS_BANK_CONFLICT")
_ACTIVE = ("SQ_LDS_IDX_ACTIVE", "SQC_LDS_IDX_ACTIVE")
_ROCM_BYTES = {"FETCH_SIZE": 1024, "WRITE_SIZE": 1024, "TCC_REQ_sum": 128}
_DURATION, _OCCUPANCY = "gpu__time_duration.sum", "sm__warps_active.avg.pct_of_peak_sustained_active"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
_MEMORY, _L2 = "dram__bytes.sum", "lts__t_bytes.sum"
_TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
_FMA = "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active"
_ALU = "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active"
_UNIFORM = "sm__inst_executed_pipe_uniform.avg.pct_of_peak_sustained_active"
_METRICS = (_DURATION, _OCCUPANCY, _CONFLICTS, _WAVEFRONTS, _MEMORY, _L2, _TENSOR, _FMA, _ALU, _UNIFORM)
_NCU_MEANS = frozenset((_OCCUPANCY, _TENSOR, _FMA, _ALU, _UNIFORM))
_KERNEL, _NCU_HEADER = "Kernel Name", '"ID","Process ID",'

Dispatch = Mapping[str, float]
"""values of one kernel launch by counter; `ns` is its duration"""


@dataclass(frozen=True)
class CounterTool:
    """One vendor's profiler."""

    program: str
    install: str
    command: Callable[[Path, str], list[str]]
    """the command line up to the profiled program, for a folder that it may write to and the device's arch"""
    read: Callable[[Path, str, int], Counters | None]
    """what folder and output hold of the last so many launches; None where they hold no counter"""
    refusals: Mapping[str, str]
    """by a text of the output: what it means and what to do"""

    def problem(self, output: str) -> str:
        """Say in one line why there are no counters."""
        for text, meaning in self.refusals.items():
            if text in output:
                return f"{self.program}: {meaning}"
        last = next((line for line in reversed(output.splitlines()) if line.strip()), "it printed nothing")
        return f"{self.program} gave no counters: {printable(last).strip()[:300]}"


def rocprofv3_command(folder: Path, arch: str) -> list[str]:
    """Have each row of counters collected in a run of its own."""
    passes = _CDNA_PASSES if arch.startswith("gfx9") else _RDNA_PASSES
    rows = folder / "counters.txt"
    rows.write_text("".join(f"pmc: {' '.join(names)}\n" for names in passes), encoding="ascii")
    output = ["--kernel-trace", "--output-format", "csv", "-d", str(folder / "rocprofv3")]
    return ["-i", str(rows), *output, "--"]


def read_rocprofv3(folder: Path, output: str, launches: int) -> Counters | None:
    """Read every pass's CSV. A pass counts the same launches again, so each contributes its own counters."""
    del output
    values: dict[str, float] = {}
    for file in sorted(folder.glob("rocprofv3/**/*counter_collection.csv")):
        trace = file.with_name(file.name.replace("counter_collection", "kernel_trace"))
        collected = _rocm_dispatches(
            file.read_text(encoding="utf-8"), trace.read_text(encoding="utf-8") if trace.is_file() else ""
        )
        values |= _summed(collected[-launches:], _ROCM_MEANS, _ROCM_BYTES)
    if not values:
        return None
    read, written = values.get("FETCH_SIZE"), values.get("WRITE_SIZE")
    conflicts = next((values[name] for name in _CONFLICTING if name in values), None)
    active = next((values[name] for name in _ACTIVE if name in values), None)
    return Counters(
        kernel_us=values.get("us"),
        occupancy_pct=values.get("OccupancyPercent"),
        lds_conflict_pct=_share(conflicts, active),
        memory_gbs=None if read is None or written is None else read + written,
        l2_gbs=values.get("TCC_REQ_sum"),
        matrix_pct=values.get("MfmaUtil"),
        vector_pct=values.get("VALUBusy"),
        scalar_pct=values.get("SALUBusy"),
    )


def ncu_command(folder: Path, arch: str) -> list[str]:
    """Have one row of raw metrics printed for each kernel between the start and the end of the profiled region."""
    del folder, arch
    shape = ["--csv", "--page", "raw", "--print-units", "base"]
    return [*shape, "--profile-from-start", "off", "--target-processes", "all", "--metrics", ",".join(_METRICS)]


def read_ncu(folder: Path, output: str, launches: int) -> Counters | None:
    """Read the CSV within what ncu printed. Its second line holds units, which are those of `--print-units base`."""
    del folder
    _, header, table = output.rpartition(_NCU_HEADER)
    lines = [line for line in (header + table).splitlines() if header and line.startswith('"')]
    rows = [
        {name: number for name in _METRICS if (number := _number(row.get(name))) is not None}
        for row in csv.DictReader(io.StringIO("\n".join(lines)))
        if row.get(_KERNEL)
    ]
    dispatches = [{**row, "ns": row[_DURATION]} for row in rows if _DURATION in row][-launches:]
    values = _summed(dispatches, _NCU_MEANS, {_MEMORY: 1, _L2: 1})
    if not values:
        return None
    vector = [values[name] for name in (_FMA, _ALU) if name in values]
    return Counters(
        kernel_us=values.get("us"),
        occupancy_pct=values.get(_OCCUPANCY),
        lds_conflict_pct=_share(values.get(_CONFLICTS), values.get(_WAVEFRONTS)),
        memory_gbs=values.get(_MEMORY),
        l2_gbs=values.get(_L2),
        matrix_pct=values.get(_TENSOR),
        vector_pct=max(vector) if vector else None,
        scalar_pct=values.get(_UNIFORM),
    )


TOOLS = {
    "rocm": CounterTool(
        "rocprofv3",
        "install ROCm's rocprofiler-sdk and put /opt/rocm/bin on PATH",
        rocprofv3_command,
        read_rocprofv3,
        {"Permission denied": "no permission for the device's counters; add the user to the groups render and video"},
    ),
    "cuda": CounterTool(
        "ncu",
        "install CUDA's Nsight Compute and put ncu on PATH",
        ncu_command,
        read_ncu,
        {
            "ERR_NVGPUCTRPERM": "no permission for the GPU's counters (ERR_NVGPUCTRPERM); run as root, or load the "
            "nvidia module with NVreg_RestrictProfilingToAdminUsers=0"
        },
    ),
}


def _rocm_dispatches(collected: str, trace: str) -> list[Dispatch]:
    """One entry for each launch in order; before ROCm 6.4 its times are in the kernel trace alone."""
    times = {row["Dispatch_Id"]: row for row in csv.DictReader(io.StringIO(trace))}
    found: dict[int, dict[str, float]] = defaultdict(dict)
    for row in csv.DictReader(io.StringIO(collected)):
        if row.get("Kernel_Name", "").startswith(_BLIT):
            continue
        value = _number(row.get("Counter_Value"))
        timed = row if row.get("End_Timestamp") else times.get(row["Dispatch_Id"], {})
        dispatch = found[int(row["Dispatch_Id"])]
        if value is not None:
            dispatch[row["Counter_Name"]] = value
        if timed.get("End_Timestamp"):
            dispatch["ns"] = float(timed["End_Timestamp"]) - float(timed["Start_Timestamp"])
    return [dispatch for _, dispatch in sorted(found.items())]


def _summed(dispatches: Sequence[Dispatch], means: Iterable[str], rates: Mapping[str, int]) -> dict[str, float]:
    """Sums over the launches, and `us`, their microseconds.

    Args:
        dispatches: the launches.
        means: counters whose mean is taken, weighted by time where times are known.
        rates: counters that become 10^9 bytes a second, with the bytes that each unit is; without times they are left
            out.
    """
    total: dict[str, float] = defaultdict(float)
    weights: dict[str, float] = defaultdict(float)
    for dispatch in dispatches:
        weight = dispatch.get("ns", 1.0)
        for name, value in dispatch.items():
            total[name] += value * weight if name in means else value
            weights[name] += weight
    nanoseconds = total.pop("ns", 0.0)
    found = {name: value / weights[name] if name in means else value for name, value in total.items()}
    for name in set(rates) & set(found):
        count = found.pop(name)
        if nanoseconds:
            found[name] = count * rates[name] / nanoseconds
    return found | ({"us": nanoseconds / 1e3} if nanoseconds else {})


def _share(part: float | None, whole: float | None) -> float | None:
    if part is None or whole is None:
        return None
    return 100 * part / whole if whole else 0.0


def _number(text: str | None) -> float | None:
    """Read a number, of which ncu separates thousands with commas; None where it is none."""
    try:
        return float((text or "").replace(",", ""))
    except ValueError:
        return None
