"""Run one task's kernel on the CPU, as AMD machine code or in the source-level emulation, and compare its outputs.

A process of its own for `tools/amd_machine_code.py`: Triton and PyTorch are changed for good. Prints one line of JSON.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from arena.judge.selection import emulation_work, select_cases
from arena.platforms.cpu.amd_isa.execute import FIRST_WAVE_FIRST, LAST_WAVE_FIRST, TOGETHER
from arena.platforms.toolchains.base import Built, HipToolchain, Target
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_build import default_cache_root
from arena.platforms.toolchains.task_header import dtype_key
from arena.task.corpus.corpora import open_corpora
from arena.task.definition import Arguments, Case, ScalarSpec, Task, TaskType, arguments
from arena.task.options import CPU_MAX_WORK, Options

SEED = 20250101
MACHINE, SOURCE = "machine", "source"
ORDERS = {"together": TOGETHER, "first": FIRST_WAVE_FIRST, "last": LAST_WAVE_FIRST}


@dataclass(frozen=True)
class Limit:
    """Seconds that the launches of a call may take, and the order in which waves run."""

    seconds: float
    order: int


@dataclass(frozen=True)
class Result:
    """What came of one kernel in one way of running it."""

    outcome: str
    """`right`, `wrong` or `not_checked`"""
    detail: str
    seconds: float
    """of the executed launches or of the emulated call, builds not included"""
    case: str
    mnemonics: dict[str, int]


class Drawn:
    """One case with its inputs in memory, and the reference to compare its outputs with."""

    def __init__(self, task: Task, case: Case) -> None:
        import torch

        from arena.judge.correctness.buffers import Sets
        from arena.judge.correctness.inputs import draw_inputs
        from arena.platforms import platform
        from arena.task.numerics.reference import Reference

        self.case, self.arguments, self._reference = case, arguments(task, case), Reference(task.reference_path)
        self.sets = Sets(platform("cpu"), self.arguments, 1)
        self.sets.scatter_canaries()
        self.sets.poison()
        generator = torch.Generator()
        generator.manual_seed(SEED)
        inputs = draw_inputs(self.arguments, self._reference, 1, generator)
        self.sets.write(inputs)
        self._before = self.sets.raw.clone()
        self._inputs = {name: values[0].clone() for name, values in inputs.items()}

    def check(self) -> tuple[bool, str]:
        """Whether every output is right and nothing else was written, and the error or what is wrong."""
        from arena.judge.correctness.verify import check_canaries, check_inputs, check_results
        from arena.results.verdict import Status

        found = check_results(self.arguments, self._reference, self._inputs, self.sets, 0)
        if found.status is not Status.PASSED:
            return False, f"{self.case.label}: {found.detail}"
        for check in (check_inputs(self._inputs, self.sets, 0), check_canaries(self._before, self.sets)):
            if check.status is not Status.PASSED:
                return False, f"{self.case.label}: {check.detail}"
        return True, f"error ratio {found.error_ratio:.2g}"


def child(task: Task, kernel: Path, target: str, way: str, cases: list[Case], limit: Limit) -> Result:
    """Run one kernel on some cases and compare it."""
    from arena.platforms.cpu.amd_isa.faults import MachineFault, NotModelled

    drawn = [Drawn(task, case) for case in cases]
    run = {(True, MACHINE): triton_machine, (True, SOURCE): triton_source, (False, MACHINE): hip_machine}
    call = run.get((task.task_type is TaskType.TRITON2TRITON, way), hip_source)
    label = cases[0].label if len(cases) == 1 else f"{len(cases)} cases"
    try:
        seconds, counted = call(task, kernel, drawn, target, limit)
    except NotModelled as problem:
        return Result("not_checked", str(problem), 0.0, label, {})
    except MachineFault as problem:
        return Result("wrong", str(problem), 0.0, label, {})
    checks = [each.check() for each in drawn]
    detail = next((detail for right, detail in checks if not right), checks[0][1])
    return Result("right" if all(right for right, _ in checks) else "wrong", detail, seconds, label, counted)


def chosen_cases(task: Task, which: str) -> list[Case]:
    """The seen case with the least work, or all that the CPU platform runs."""
    seen = [case for case in task.cases if case.split == "seen"]
    if which == "smallest":
        return [min(seen, key=lambda case: emulation_work(arguments(task, case)))]
    return list(select_cases(task, tuple(seen), Options(max_work=CPU_MAX_WORK)))


def values_of(task: Task, sets: Any, memory: Any = None) -> list[Any]:
    """Tensors, scalars and None in call order; `memory` is told of every tensor."""
    worked_out: Arguments = sets.arguments
    found: list[Any] = []
    for spec in (*task.inputs, *task.outputs):
        if isinstance(spec, ScalarSpec):
            found.append(worked_out.scalar(spec))
            continue
        tensor = worked_out.tensors[spec.name]
        if tensor is None:
            found.append(None)
            continue
        view = sets.view(spec.name)[0]
        if spec.fill is not None and spec.fill.kind == "addresses":
            view = view + sets.view(str(spec.fill.arguments["of"]))[0].data_ptr()  # in memory of its own
        if memory is not None:
            memory.add(view.data_ptr(), tensor.span * tensor.item_bytes, spec.name, view)
        found.append(view)
    return found


def hip_values(task: Task, sets: Any, memory: Any = None) -> tuple[list[Any], list[Any]]:
    """ctypes values of the arguments and of the axes."""
    kinds = {"float32": ctypes.c_float, "int64": ctypes.c_int64, "int32": ctypes.c_int32, "bool": ctypes.c_bool}
    given: list[Any] = []
    for spec, value in zip((*task.inputs, *task.outputs), values_of(task, sets, memory), strict=True):
        if isinstance(spec, ScalarSpec):
            given.append(kinds[spec.dtype](value))
        else:
            given.append(ctypes.c_void_p(None if value is None else value.data_ptr()))
    return given, [ctypes.c_int64(int(sets.arguments.names[axis.name])) for axis in task.axes]


def by_dtypes(task: Task, drawn: list[Drawn]) -> dict[str, list[Drawn]]:
    """Cases by the library that they need."""
    found: dict[str, list[Drawn]] = {}
    for each in drawn:
        found.setdefault(dtype_key(task, each.case), []).append(each)
    return found


def hip_machine(
    task: Task, kernel: Path, drawn: list[Drawn], target: str, limit: Limit
) -> tuple[float, dict[str, int]]:
    """Build for the target and execute the launches of the library's own host code."""
    from arena.platforms.cpu.amd_isa.faults import NotModelled
    from arena.platforms.cpu.amd_isa.hip_host import HipHost, build_runtime
    from arena.platforms.cpu.amd_isa.memory import DeviceMemory
    from arena.platforms.cross.compilers import hip_cross_toolchain

    runtime, seconds, counted = build_runtime(BuildCache(default_cache_root())), 0.0, Counter[str]()
    for cases in by_dtypes(task, drawn).values():
        library = hip_library(hip_cross_toolchain(target), Target(target, 64), task, kernel, cases[0].case)
        memory = DeviceMemory()
        host = HipHost(library, runtime, target, memory, objdump())
        host.order = limit.order
        counted.update(host.mnemonics())
        for each in cases:
            given, axes = hip_values(task, each.sets, memory)
            workspace = host.workspace_bytes(task.entry, axes)
            scratch = [] if workspace is None else [ctypes.c_void_p(host.allocate(max(1, workspace)))]
            started = time.monotonic()
            code = host.call(task.entry, [*given, *axes, *scratch, ctypes.c_void_p(None)], limit.seconds)
            seconds += time.monotonic() - started
            if code:
                raise NotModelled(f"the host function returned {code}")
    return seconds, dict(counted)


def hip_library(toolchain: HipToolchain, target: Target, task: Task, kernel: Path, case: Case) -> Path:
    """The kernel as a shared library."""
    from arena.judge.compile.stage import hip_sources
    from arena.platforms.cpu.amd_isa.faults import NotModelled

    (source,) = hip_sources(task, kernel, [case]).values()
    built = toolchain.build(source, target)
    if not isinstance(built, Built):
        raise NotModelled(f"does not build: {built.log[:300]}")
    return built.library


def hip_source(task: Task, kernel: Path, drawn: list[Drawn], target: str, limit: Limit) -> tuple[float, dict[str, int]]:
    """Build for the CPU at 64 lanes and call it in this process."""
    from arena.platforms.cpu.amd_isa.faults import NotModelled
    from arena.platforms.cpu.hip.toolchain import HipCpuToolchain

    toolchain, seconds = HipCpuToolchain(BuildCache(default_cache_root())), 0.0
    ctypes.CDLL(str(toolchain.runtime), mode=ctypes.RTLD_GLOBAL)
    for cases in by_dtypes(task, drawn).values():
        library = ctypes.CDLL(str(hip_library(toolchain, Target("cpu", 64), task, kernel, cases[0].case)))
        size_of = getattr(library, f"{task.entry}_workspace", None)
        for each in cases:
            given, axes = hip_values(task, each.sets)
            scratch = []
            if size_of is not None:
                size_of.restype = ctypes.c_size_t
                scratch = [ctypes.create_string_buffer(max(1, size_of(*axes)))]
            started = time.monotonic()
            if getattr(library, task.entry)(*given, *axes, *scratch, ctypes.c_void_p(None)):
                raise NotModelled("the host function failed")
            seconds += time.monotonic() - started
    return seconds, {}


def triton_machine(
    task: Task, kernel: Path, drawn: list[Drawn], target: str, limit: Limit
) -> tuple[float, dict[str, int]]:
    """Have the kernel's Python code launch on a stand-in for the target that executes the machine code."""
    from arena.platforms.cpu.amd_isa.memory import DeviceMemory
    from arena.platforms.cpu.amd_isa.triton_host import TritonHost
    from arena.platforms.cross import triton as triton_cross
    from arena.task.numerics.reference import load_module

    memory = DeviceMemory()
    values = [values_of(task, each.sets, memory) for each in drawn]
    host = TritonHost(target, memory, objdump())
    host.order = limit.order
    triton_cross.install(target, host=host)
    entry = getattr(load_module(kernel, "candidate"), task.entry)
    for given in values:
        host.limit(limit.seconds)
        entry(*given)
    _leave_pretence()
    return host.seconds, host.mnemonics()


def _leave_pretence() -> None:
    """Let PyTorch answer as itself again: outputs are compared on the CPU."""
    from torch.overrides import _get_current_function_mode_stack, _pop_mode

    for _ in _get_current_function_mode_stack():  # type: ignore[no-untyped-call]
        _pop_mode()  # type: ignore[no-untyped-call]


def triton_source(
    task: Task, kernel: Path, drawn: list[Drawn], target: str, limit: Limit
) -> tuple[float, dict[str, int]]:
    """Interpret the kernel with the mended interpreter."""
    from arena.platforms.cpu import triton as interpreter
    from arena.task.numerics.reference import load_module

    interpreter.install()
    entry, started = getattr(load_module(kernel, "candidate"), task.entry), time.monotonic()
    for each in drawn:
        entry(*values_of(task, each.sets))
    return time.monotonic() - started, {}


def objdump() -> Path:
    """llvm-objdump beside the clang that cross-compilation uses."""
    from arena.platforms.rocm.hip_clang import find_clang

    clang = find_clang()
    if clang is None:
        raise SystemExit("no clang++ for AMD GPUs: tools/setup.sh installs one")
    return clang.with_name("llvm-objdump")


def main(name: str, kernel: str, way: str, target: str, which: str, order: str, limit_s: str) -> None:
    """Print the result of one kernel."""
    task = open_corpora().load(name)
    limit = Limit(float(limit_s), ORDERS[order])
    print(json.dumps(asdict(child(task, Path(kernel), target, way, chosen_cases(task, which), limit))))


if __name__ == "__main__":
    main(*sys.argv[1:])
