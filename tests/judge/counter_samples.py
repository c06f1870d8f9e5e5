"""What rocprofv3 and ncu print, written after their documentation; no GPU has printed these figures.

Columns: rocprofiler-sdk, "Using rocprofv3", `counter_collection.csv` and `kernel_trace.csv` (times stand in the former
from ROCm 6.4 on); NVIDIA, "Nsight Compute CLI", output of `--csv --page raw`: names, then units, then a row a launch.
"""

from __future__ import annotations

_ROCM = (
    '"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size","Kernel_Id",'
    '"Kernel_Name","Workgroup_Size","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count",'
    '"Counter_Name","Counter_Value"'
)
_TRACE = (
    '"Kind","Agent_Id","Queue_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id",'
    '"Start_Timestamp","End_Timestamp","Private_Segment_Size","Group_Segment_Size","Workgroup_Size_X",'
    '"Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"'
)
_STARTED = 3200098838431081
NANOSECONDS = (9000, 1000, 3000)
"""of three launches: the first belongs to an earlier call"""


def _times(dispatch: int) -> str:
    start = _STARTED + 100_000 * dispatch
    return f"{start},{start + NANOSECONDS[dispatch - 1]}"


def rocm_counters(rows: list[tuple[int, str, float]], *, timed: bool = True) -> str:
    """`counter_collection.csv` with a row for each (launch from 1 on, counter, value); `timed`: as from ROCm 6.4 on.

    Between the launches the runtime fills a buffer by a kernel of its own.
    """
    lines = [_ROCM + (',"Start_Timestamp","End_Timestamp"' if timed else "")]
    for dispatch, name, value in rows:
        kernel = '"void reduce<float, 256>(float const*, float*)"'
        line = f'{dispatch},{dispatch},"Agent 1",1,19,19,1048576,17,{kernel},256,4096,0,8,0,16,"{name}",{value:.6f}'
        lines.append(f"{line},{_times(dispatch)}" if timed else line)
    filled = f'9,9,"Agent 1",1,19,19,1024,3,"__amd_rocclr_fillBufferAligned",256,0,0,8,0,16,"{rows[0][1]}",1e9'
    lines.append(f"{filled},{_STARTED},{_STARTED + 10**9}" if timed else filled)
    return "\n".join(lines) + "\n"


def rocm_trace() -> str:
    """`kernel_trace.csv` of the three launches."""
    rows = (
        f'"KERNEL_DISPATCH","Agent 1",1,19,{n},17,"void reduce<float, 256>(float const*, float*)",{n},{_times(n)},'
        "0,4096,256,1,1,1048576,1,1"
        for n in (1, 2, 3)
    )
    return "\n".join((_TRACE, *rows)) + "\n"


ROCM_PASSES = (
    [
        *((1, name, 99.0) for name in ("OccupancyPercent", "VALUBusy", "SALUBusy", "MfmaUtil")),
        *((2, name, value) for name, value in (("OccupancyPercent", 40.0), ("VALUBusy", 20.0), ("SALUBusy", 4.0))),
        *((3, name, value) for name, value in (("OccupancyPercent", 80.0), ("VALUBusy", 60.0), ("SALUBusy", 8.0))),
        *((2, "MfmaUtil", 0.0), (3, "MfmaUtil", 50.0)),
    ],
    [
        *((n, "SQ_LDS_BANK_CONFLICT", value) for n, value in ((1, 5e6), (2, 100.0), (3, 300.0))),
        *((n, "SQ_LDS_IDX_ACTIVE", value) for n, value in ((1, 5e6), (2, 600.0), (3, 1000.0))),
    ],
    [(n, "FETCH_SIZE", value) for n, value in ((1, 9e6), (2, 1500.0), (3, 2500.0))],
    [
        *((n, "WRITE_SIZE", value) for n, value in ((1, 9e6), (2, 500.0), (3, 500.0))),
        *((n, "TCC_REQ_sum", value) for n, value in ((1, 9e6), (2, 25_000.0), (3, 75_000.0))),
    ],
)
"""by pass; of the last two launches: 4096 KB read and 1024 KB written in 4 µs, 100,000 requests to the L2"""

NCU = """==PROF== Connected to process 4711 (/usr/bin/python3.11)
==PROF== Profiling "reduce" - 0: 0%....50%....100% - 3 passes
"the candidate may print this"
==PROF== Disconnected from process 4711
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"dram__bytes.sum","gpu__time_duration.sum","l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",\
"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum","lts__t_bytes.sum",\
"sm__inst_executed_pipe_uniform.avg.pct_of_peak_sustained_active",\
"sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active",\
"sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",\
"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",\
"sm__warps_active.avg.pct_of_peak_sustained_active"
"","","","","","","","","","","","byte","ns","","","byte","%","%","%","%","%"
"0","4711","python3.11","localhost","reduce","1","7","(256, 1, 1)","(64, 1, 1)","0","9.0",\
"2,000,000","1,000","10","100","4,000,000","1.5","20","10","0","40"
"1","4711","python3.11","localhost","matmul","1","7","(256, 1, 1)","(64, 1, 1)","0","9.0",\
"4,000,000","3,000","30","300","8,000,000","3.5","10","50","80","60"
"""

NO_PERMISSION = """==PROF== Connected to process 4711 (/usr/bin/python3.11)
==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target \
device 0. For instructions on enabling permissions and to get more information see https://developer.nvidia.com/
==PROF== Disconnected from process 4711
==WARNING== No kernels were profiled.
"""
