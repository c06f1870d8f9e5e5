"""Messages between judge, fork server and worker.

The judge commands, the worker obeys or says why it could not; nothing a worker says can turn a failure into a success.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from arena.results.portability import KernelUse
from arena.results.profile import KernelTime


@dataclass(frozen=True)
class Handle:
    """A shared buffer for another process to open: a device handle in hex, or a descriptor sent beside it."""

    num_bytes: int
    ipc: str = ""
    lasting: bool = False
    """whether the buffer outlives a case, so that a process that opened it may keep it mapped"""


class WorkerMessage(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Base of all messages."""


# --- judge → fork server


class Spawn(WorkerMessage, frozen=True):
    """Fork a worker. Files sent beside it: the worker's end of its channel, its log, and on a GPU its flags."""

    folder: str
    """the worker's own folder: its home, temporary files and caches"""
    cache: str
    """where Triton keeps compiled kernels"""
    hide: tuple[str, ...] = ()
    """folders the worker must not see"""
    show: tuple[str, ...] = ()
    """further folders it may read"""
    worker: str = ""
    """the program that it becomes in its sandbox, which holds no Python; empty: it stays what it is"""
    preload: str = ""
    """a library that this program loads first"""
    modules: bool = False
    """whether it may construct modules"""


class Reap(WorkerMessage, frozen=True):
    """Ask how this worker ended. Waits briefly."""

    pid: int


# --- fork server → judge


class Spawned(WorkerMessage, frozen=True):
    """A worker was forked."""

    pid: int


class Ended(WorkerMessage, frozen=True):
    """The end of a worker: exit code, negative for a signal; None while it still runs."""

    pid: int
    code: int | None


# --- judge → worker

ASCENDING, DESCENDING, LAUNCH_ONLY, ENDS_ONLY = 0, 1, 2, 3
"""orders of blocks and programs, of which a GPU may choose any; or a launch is checked and runs none of them, or, of
Triton's, the first and the last"""


class Language(StrEnum):
    """The kind of file that a worker loads."""

    TRITON = "triton"
    HIP = "hip"
    TORCH = "torch"
    """a reference, as the baseline where a task gives no kernel"""
    TORCH_COMPILE = "torch_compile"


class Extension(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a module gives to `torch.utils.cpp_extension` to be compiled: texts of C++ and of CUDA C++, and flags."""

    name: str
    cpp: tuple[str, ...] = ()
    cuda: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    """for which PyTorch writes the binding; none where the text has its own"""
    cpp_flags: tuple[str, ...] = ()
    cuda_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    inline: bool = True
    """whether PyTorch puts its own headers before the texts, as `load_inline` does and `load` does not"""

    @property
    def key(self) -> str:
        """Return the hash of its content, by which it is found once it is built."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()


class Load(WorkerMessage, frozen=True):
    """Load a candidate: a Python file or a shared library."""

    language: Language
    path: str
    entry: str
    copies: tuple[str, ...] = ()
    """for `torch`: the names of the buffers its results are copied into, in the order in which it returns them"""
    target: str = ""
    """for `triton`: cross-compile for this architecture and run nothing; a worker serves one target for its life"""
    once: bool = False
    """for a target: build each signature of a kernel once, and not every launch"""
    ahead: bool = False
    """for a target: what is built will be launched on such a device; build what launches need, and record nothing"""
    disassembler: str = ""
    """for an AMD target: execute the machine code of launches on the CPU, as this llvm-objdump reads it; what is loaded
    may also be a HIP library for the target"""
    modules: bool = False
    """for `triton`: the file may define a module in place of the entry"""
    metadata: bool = False
    """for `triton`: PyTorch may compute with few integers"""
    extensions: dict[str, str] = {}
    """libraries of finished extensions, by the keys of what they were made of"""
    keeps_choices: bool = False
    """whether what Triton's autotuner has chosen is kept in the cache, for the other workers of a candidate"""


class TensorArgument(WorkerMessage, frozen=True):
    """A tensor in the shared buffer: set `k` starts `offset + k * pitch` bytes in. Strides in elements."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    pitch: int
    addresses_of: str = ""
    """elements are byte offsets into this tensor, to be turned into device addresses by the worker"""


class ScalarArgument(WorkerMessage, frozen=True):
    """A scalar; its dtype says how a C function takes it."""

    name: str
    dtype: str
    value: bool | int | float


class NullArgument(WorkerMessage, frozen=True):
    """An optional tensor that this case leaves out."""

    name: str


Argument = TensorArgument | ScalarArgument | NullArgument


class ModuleCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The construction and the call of a module for one case; names are those of arguments."""

    init: tuple[bool | int | float | tuple[bool | int | float, ...], ...]
    forward: tuple[str, ...]
    state: dict[str, str]
    results: tuple[str, ...]
    """outputs, in the order in which `forward` returns them"""
    zeros: tuple[str, ...] = ()
    """entries of the state that are 0"""


class Bind(WorkerMessage, frozen=True):
    """Map a shared buffer with `sets` sets of arguments; replaces what was bound before."""

    buffer: Handle
    sets: int
    arguments: tuple[Argument, ...]
    axes: tuple[int, ...]
    extras: dict[str, bool | int | float | str] = {}
    """axes and dtypes by name, for a `torch` baseline that asks for them"""
    module: ModuleCall | None = None
    """of a task that takes modules"""


class LoadConstants(WorkerMessage, frozen=True):
    """The constant inputs are in the buffer, and nothing else of the case: construct modules, and load their state."""


class Release(WorkerMessage, frozen=True):
    """Forget what was bound and arranged, and unmap the buffer."""


class Call(WorkerMessage, frozen=True):
    """Call the entry once on one set, and wait for the device."""

    set: int
    order: int = ASCENDING
    """of blocks and programs in an emulation: one of those above, or the seed of a shuffle, below 2^64"""


class Arrange(WorkerMessage, frozen=True):
    """Make a pass called `name`: one call on each of these sets, in order; as a device graph, or as plain calls."""

    name: str
    sets: tuple[int, ...]
    graph: bool


class Prepare(WorkerMessage, frozen=True):
    """New data is in the buffers: work out addresses again, and be awake for what comes next."""


class Pass(WorkerMessage, frozen=True):
    """Run an arranged pass, and wait for the device; where there are flags, between `go` and `done`."""

    name: str


class CopyBack(WorkerMessage, frozen=True):
    """For `torch`: copy what an arranged pass computed into the output buffers."""

    name: str


class ProfileRequest(WorkerMessage, frozen=True):
    """Call the entry once on one set under the profiler."""

    set: int


class ReportKernels(WorkerMessage, frozen=True):
    """Ask what was compiled for the target since the last time."""


class CopyHalf(WorkerMessage, frozen=True):
    """Map a buffer, copy its first half to its second, and unmap it: only where sharing itself is checked."""

    handle: Handle


class Linger(WorkerMessage, frozen=True):
    """Start a kernel of one block that runs for so many cycles of its clock, and do not wait for it."""

    cycles: int


# --- worker → judge: a worker that oversteps these limits has failed (`judge/answers.py`)

ANSWER_BYTES = 1 << 20
"""of one frame"""
DETAIL_CHARACTERS = 4000
NAME_CHARACTERS = 300
"""of a kernel's name"""
MOST_KERNELS = 128
DIMENSIONS = 3
MOST_TEXTS = 64
"""texts, flags or functions of an extension"""
LARGEST_COUNT = 1 << 40
LONGEST_S = 1e6


class Ready(WorkerMessage, frozen=True):
    """Said once, before any candidate code is loaded: the sandbox of this worker."""

    isolation: str


class Done(WorkerMessage, frozen=True):
    """Done as told. `worker_s`: what the worker's own clock says of it, a diagnostic that is never the measurement."""

    worker_s: float = 0.0


class Kernels(WorkerMessage, frozen=True):
    """The kernels that were compiled. A worker can lie about its own candidate's: nothing is scored by them."""

    kernels: tuple[KernelUse, ...]


class Profiled(WorkerMessage, frozen=True):
    """The kernels that ran during a profiled call. A worker can lie about its own: it is feedback and never a score."""

    kernels: tuple[KernelTime, ...]


class Blame(StrEnum):
    """The failures that a worker may report of its own candidate."""

    COMPILE_ERROR = "compile_error"
    LOAD_ERROR = "load_error"
    WRONG_RESULT = "wrong_result"
    """a module that returns something else than the tensors that are asked for"""
    LAUNCH_ERROR = "launch_error"
    REFUSED = "refused"
    """its own host code raised an error"""
    GRID_LIMIT = "grid_limit"
    """an emulated launch of more blocks than a GPU's grid has"""
    OUT_OF_MEMORY = "out_of_memory"
    NOT_CAPTURABLE = "not_capturable"
    RULE_VIOLATION = "rule_violation"
    NOT_MODELLED = "not_modelled"
    """machine code that the executor does not know"""
    MACHINE_FAULT = "machine_fault"
    """machine code that does what a GPU would fault on"""


class Failed(WorkerMessage, frozen=True):
    """Not done, and why."""

    blame: Blame
    detail: str


class ExtensionWanted(WorkerMessage, frozen=True):
    """Not done, since the candidate asks for an extension that is not built."""

    extension: Extension


ToForkServer = Spawn | Reap
FromForkServer = Spawned | Ended
ToWorker = (
    Load
    | Bind
    | LoadConstants
    | Release
    | Call
    | Arrange
    | Prepare
    | Pass
    | CopyBack
    | ProfileRequest
    | ReportKernels
    | CopyHalf
    | Linger
)
FromWorker = Ready | Done | Failed | ExtensionWanted | Kernels | Profiled


# --- judge → a process that a vendor's profiler starts (`worker/profiled_run.py`)


class ProfiledRun(msgspec.Struct, frozen=True):
    """A program to run in a worker: the places it writes to and sees, the program, the case, and its buffer's bytes."""

    platform: str
    spawn: Spawn
    load: Load
    bind: Bind
    data: str
    """the path of a file"""
