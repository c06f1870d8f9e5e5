"""Candidates of every language behind one small interface."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from arena.platforms.cross import triton as triton_cross
from arena.processes.protocol import Blame, Language, Load, NullArgument, ScalarArgument
from arena.results.portability import KernelUse
from arena.task.numerics.reference import FUNCTION, load_module, results
from arena.worker import extensions
from arena.worker.binding import Binding
from arena.worker.c_values import c_value
from arena.worker.modules import LoadError, WrongTensors, callee
from arena.worker.operators import Operators, breaks_a_rule

if TYPE_CHECKING:
    from arena.platforms.cpu.triton.device_memory import Region

_WORKSPACE_POISON = 0xFF  # NaN, as whatever float it is read
_WORKSPACE_ALIGN = 256
_WORKSPACE_BYTES = 256 << 20
_OF_MACHINE_CODE = {"NotModelled": Blame.NOT_MODELLED, "MachineFault": Blame.MACHINE_FAULT}
_OUT_OF_MEMORY = 2  # hipErrorOutOfMemory, and cudaErrorMemoryAllocation


class LaunchError(Exception):
    """The entry returned an error code."""


class Entry(Protocol):
    """A loaded candidate."""

    def bind(self, binding: Binding | None) -> None:
        """Take the arguments of every set; None forgets them."""

    def load_constants(self) -> None:
        """Construct what is kept for the case, from the constants in the buffer."""

    def call(self, index: int) -> None:
        """Issue one call on set `index`, on the current stream."""

    def copy_back(self, index: int) -> None:
        """Copy what the last call on set `index` computed into its outputs, where the call itself does not."""

    def kernels(self) -> tuple[KernelUse, ...]:
        """What was compiled since the last time, where calls compile and do not run."""


def load(message: Load, device: str) -> Entry:
    """Load a candidate; `device` is PyTorch's word for where its arguments will be."""
    if message.disassembler:
        from arena.worker import machine_code

        triton = message.language is Language.TRITON
        return (machine_code.TritonMachineEntry if triton else machine_code.HipMachineEntry)(message)
    if message.language is Language.HIP:
        return HipEntry(Path(message.path), message.entry)
    if message.language is Language.TRITON:
        return PythonEntry(message, device)
    return TorchEntry(Path(message.path), message.copies, compiled=message.language is Language.TORCH_COMPILE)


def _own_copy(path: Path) -> Path:
    """Return a copy in a folder that the worker may write: some keep files beside themselves. The text is not run."""
    copy = Path(tempfile.mkdtemp()) / path.name
    shutil.copyfile(path, copy)
    return copy


class PythonEntry:
    """A Triton candidate: a Python function that is handed its outputs, or a module, and no arithmetic of PyTorch's.

    For a target, calls compile and run nothing; what PyTorch computes there is nobody's result, and is permitted.
    """

    def __init__(self, message: Load, device: str) -> None:
        path, target = Path(message.path), message.target
        self._operators = None if target else Operators(device, metadata=message.metadata)
        once, ahead = message.once, message.ahead
        if message.modules:
            extensions.install(message.extensions)
        if message.keeps_choices and not target:
            os.environ["TRITON_CACHE_AUTOTUNING"] = "1"
        self._records = triton_cross.install(target, each_once=once, ahead=ahead) if target else None
        module = load_module(path, "candidate", _own_copy(path) if message.modules else None)
        self._callee = callee(module, message, path.name)
        self._interprets = self._operators is not None and os.environ.get("TRITON_INTERPRET") == "1"
        self._region: Region | None = None

    def bind(self, binding: Binding | None) -> None:
        """Keep the argument lists; where kernels are interpreted, put the arguments out of the worker's reach."""
        self._callee.bind(None)
        if self._interprets:
            self._protect(binding)
        if self._operators is not None:
            self._operators.protect(*((0, 0) if binding is None else binding.extent))
        self._callee.bind(binding)

    def load_constants(self) -> None:
        """Have a module constructed."""
        self._callee.load_constants()

    def _protect(self, binding: Binding | None) -> None:
        from arena.platforms.cpu.triton import device_memory, fence, tuning

        tuning.forget_choices()
        if self._region is not None:
            device_memory.forget(self._region)
            self._region = None
        if binding is None:
            fence.put_up(None)
            return
        self._region = device_memory.mirror(*binding.extent)
        binding.move(self._region.first)
        fence.put_up(fence.Fence.around(*binding.extent, binding.parts))

    def call(self, index: int) -> None:
        """Call the function or the module."""
        if self._operators is not None:
            self._operators.begin_call()
        if self._interprets:
            from arena.platforms.cpu.triton import device_memory

            device_memory.begin_call()
        self._callee.call(index)

    def copy_back(self, index: int) -> None:
        """Outputs were written in place."""

    def kernels(self) -> tuple[KernelUse, ...]:
        """What the launches since the last time were compiled to."""
        return self._records.take() if self._records else ()


class HipEntry:
    """A HIP candidate on a GPU, a C function in a shared library, where PyTorch's profiler runs.

    Nothing is judged by what it does here: for that the worker of `arena/platforms/toolchains/hip_worker` loads it.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._name = name
        try:
            self._library = ctypes.CDLL(str(path))
            self._function = getattr(self._library, name)
        except (OSError, AttributeError) as problem:
            raise LoadError(str(problem)) from None
        self._function.restype = ctypes.c_int
        self._calls: list[tuple[Any, ...]] = []
        self._workspace: Any = None

    def bind(self, binding: Binding | None) -> None:
        """Turn every set's arguments into C values: pointers and scalars, axes, scratch; the stream comes last."""
        self._calls, self._workspace = [], None
        if binding is None:
            return
        axes = [ctypes.c_int64(size) for size in binding.message.axes]
        scratch = self._scratch(axes, len(binding.values))
        for index, values in enumerate(binding.values):
            arguments = [c_value(a, v) for a, v in zip(binding.message.arguments, values, strict=True)]
            own = [scratch[index % len(scratch)]] if scratch else []
            self._calls.append((*arguments, *axes, *own))

    def load_constants(self) -> None:
        """It is given them in every call."""

    def call(self, index: int) -> None:
        """Call the function with the current stream; a code other than 0 is an error of the launch."""
        import torch

        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        code = int(self._function(*self._calls[index], stream))
        said = f"`{self._name}` returned error {code}"
        if code == _OUT_OF_MEMORY:
            raise MemoryError(f"{said}{self.error_name(code)}: the device has no memory left for it")
        if code != 0:
            raise LaunchError(f"{said}{self.error_name(code)}")

    def copy_back(self, index: int) -> None:
        """Outputs were written in place."""

    def kernels(self) -> tuple[KernelUse, ...]:
        """Its library was compiled elsewhere."""
        return ()

    def error_name(self, code: int) -> str:
        """Return ` (hipErrorInvalidValue)`, where the runtime that the library is linked with is in reach."""
        name_of = getattr(self._library, "hipGetErrorName", None)
        if name_of is None:
            return ""
        name_of.restype = ctypes.c_char_p
        return f" ({name_of(ctypes.c_int(code)).decode(errors='replace')})"

    def _scratch(self, axes: list[ctypes.c_int64], sets: int) -> list[ctypes.c_void_p]:
        """Poisoned scratch memory for every set, or as many as fit, where the library exports how much it needs."""
        import torch

        size_function = getattr(self._library, f"{self._name}_workspace", None)
        if size_function is None:
            return []
        size_function.restype = ctypes.c_size_t
        step = -(-max(1, size_function(*axes)) // _WORKSPACE_ALIGN) * _WORKSPACE_ALIGN
        regions = max(1, min(sets, _WORKSPACE_BYTES // step))
        self._workspace = torch.full((regions * step,), _WORKSPACE_POISON, dtype=torch.uint8, device="cuda")
        return [ctypes.c_void_p(self._workspace.data_ptr() + region * step) for region in range(regions)]


class TorchEntry:
    """A reference as PyTorch runs it: the baseline if no kernel is given. Its copies are not part of a timed pass."""

    def __init__(self, path: Path, copies: tuple[str, ...], *, compiled: bool) -> None:
        import torch

        function = getattr(load_module(path, "baseline"), FUNCTION)
        self._function: Callable[..., Any] = torch.compile(function) if compiled else function
        self._copies = copies
        self._binding: Binding | None = None
        self._values: dict[str, Any] = {}
        self._kept: dict[int, tuple[Any, ...]] = {}

    def bind(self, binding: Binding | None) -> None:
        """Keep the tensors by name, beside the scalars, axes and dtypes of the case."""
        self._binding = binding
        self._kept.clear()
        if binding is not None:
            self._values = _named_values(binding)

    def load_constants(self) -> None:
        """It is given them in every call."""

    def call(self, index: int) -> None:
        """Compute, and keep the results until they are asked for."""
        import torch

        assert self._binding is not None
        with torch.no_grad():
            tensors = self._binding.tensors(index)
            self._kept[index] = results(self._function, self._values, tensors, len(self._copies))

    def copy_back(self, index: int) -> None:
        """Copy the kept results into the declared outputs."""
        assert self._binding is not None
        tensors = self._binding.tensors(index)
        for name, result in zip(self._copies, self._kept[index], strict=True):
            tensors[name].copy_(result)

    def kernels(self) -> tuple[KernelUse, ...]:
        """PyTorch's own are nobody's candidate."""
        return ()


def blame(problem: BaseException, *, loading: bool) -> Blame:
    """Which failure an exception is, from its type."""
    import torch

    if isinstance(problem, MemoryError | torch.cuda.OutOfMemoryError):
        return Blame.OUT_OF_MEMORY
    if breaks_a_rule(problem):
        return Blame.RULE_VIOLATION
    if isinstance(problem, LoadError):
        return Blame.LOAD_ERROR
    if isinstance(problem, WrongTensors):
        return Blame.WRONG_RESULT
    names = {kind.__name__ for kind in type(problem).__mro__}
    for name, said in _OF_MACHINE_CODE.items():
        if name in names:
            return said
    if "GridLimit" in names:
        return Blame.GRID_LIMIT
    if names & {"CompilationError", "CompileTimeAssertionFailure"}:
        return Blame.COMPILE_ERROR
    if "InterpreterError" in names:
        return _blame_of_interpreted(problem)
    if loading:
        return Blame.COMPILE_ERROR if isinstance(problem, SyntaxError) else Blame.LOAD_ERROR
    return Blame.LAUNCH_ERROR


def _blame_of_interpreted(problem: BaseException) -> Blame:
    """An interpreted kernel fails when it runs; what a compiler would have refused is told by the cause's type."""
    cause = problem.__cause__ or problem.__context__
    return Blame.COMPILE_ERROR if isinstance(cause, NameError | AttributeError | TypeError) else Blame.LAUNCH_ERROR


def _named_values(binding: Binding) -> dict[str, Any]:
    from arena.task.numerics.dtypes import torch_dtype

    values: dict[str, Any] = {}
    for name, extra in binding.message.extras.items():
        values[name] = torch_dtype(extra) if isinstance(extra, str) else extra
    for argument in binding.message.arguments:
        if isinstance(argument, ScalarArgument):
            values[argument.name] = argument.value
        elif isinstance(argument, NullArgument):
            values[argument.name] = None
    return values
