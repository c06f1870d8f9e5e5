"""Execute what cross-compilation builds for an AMD GPU on the CPU, and compare it with the reference.

    python tools/amd_machine_code.py                        every task's kernel on its smallest seen case, for gfx942
    python tools/amd_machine_code.py --target gfx950 'hip2hip/*'
    python tools/amd_machine_code.py --experts 'triton2triton/gemm/*'
    python tools/amd_machine_code.py --mnemonics            count the instructions of all code objects

Each kernel gets a line: right, wrong or not_checked (with the instruction), what the source-level emulation makes of
the same inputs, and seconds. Results are kept by the hash of kernel, task and executor; `--again` ignores them.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from arena.corpus.corpora import load_corpus
from arena.corpus.selection import select
from arena.judge.selection import emulation_work
from arena.model.task import Arguments, Case, ScalarSpec, Task, TaskType, arguments

ROOT = Path(__file__).resolve().parents[1]
EXECUTOR = ROOT / "arena/emulation/amd_isa"
SEED = 20250101
MACHINE, SOURCE = "machine", "source"


@dataclass(frozen=True)
class Result:
    """What came of one kernel on one case in one way of running it."""

    outcome: str
    """`right`, `wrong` or `not_checked`"""
    detail: str
    seconds: float
    """of the executed launches or of the emulated call, builds not included"""
    case: str
    mnemonics: dict[str, int]


# --- one kernel, in a process of its own


def child(task: Task, kernel: Path, target: str, way: str, limit_s: float) -> Result:
    """Run one kernel on the smallest seen case and compare it."""
    import torch

    from arena.emulation.amd_isa.faults import MachineFault, NotModelled
    from arena.judge.buffers import Sets
    from arena.judge.inputs import draw_inputs
    from arena.judge.verify import check_canaries, check_inputs, check_results
    from arena.model.verdict import Status
    from arena.numerics.reference import Reference
    from arena.platforms import platform

    case = smallest(task)
    worked_out, reference = arguments(task, case), Reference(task.reference_path)
    sets = Sets(platform("cpu"), worked_out, 1)
    sets.scatter_canaries()
    sets.poison()
    generator = torch.Generator()
    generator.manual_seed(SEED)
    inputs = draw_inputs(worked_out, reference, 1, generator)
    sets.write(inputs)
    before = sets.raw.clone()
    one = {name: values[0].clone() for name, values in inputs.items()}
    run = {(True, MACHINE): triton_machine, (True, SOURCE): triton_source, (False, MACHINE): hip_machine}
    call = run.get((task.task_type is TaskType.TRITON2TRITON, way), hip_source)
    counted: dict[str, int] = {}
    try:
        seconds, counted = call(task, case, kernel, sets, target, limit_s)
    except NotModelled as problem:
        return Result("not_checked", str(problem), 0.0, case.label, counted)
    except MachineFault as problem:
        return Result("wrong", str(problem), 0.0, case.label, counted)
    found = check_results(worked_out, reference, one, sets, 0)
    for check in (check_inputs(one, sets, 0), check_canaries(before, sets)):
        found = check if found.status is Status.PASSED and check.status is not Status.PASSED else found
    ratio = f"error ratio {found.error_ratio:.2g}" if found.error_ratio is not None else ""
    right = found.status is Status.PASSED
    return Result("right" if right else "wrong", found.detail or ratio, seconds, case.label, counted)


def smallest(task: Task) -> Case:
    """The seen case with the least work."""
    seen = [case for case in task.cases if case.split == "seen"]
    return min(seen, key=lambda case: emulation_work(arguments(task, case)))


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


def hip_machine(
    task: Task, case: Case, kernel: Path, sets: Any, target: str, limit_s: float
) -> tuple[float, dict[str, int]]:
    """Build for the target and execute the launches of the library's own host code."""
    from arena.cross.compilers import hip_cross_toolchain
    from arena.emulation.amd_isa.faults import NotModelled
    from arena.emulation.amd_isa.hip_host import HipHost, build_runtime
    from arena.emulation.amd_isa.memory import DeviceMemory
    from arena.judge.building import hip_sources
    from arena.toolchains.base import Built, Target
    from arena.toolchains.build_cache import BuildCache
    from arena.toolchains.hip_build import default_cache_root

    (source,) = hip_sources(task, kernel, [case]).values()
    built = hip_cross_toolchain(target).build(source, Target(target, 64))
    if not isinstance(built, Built):
        raise NotModelled(f"does not build: {built.log[:300]}")
    memory = DeviceMemory()
    given, axes = hip_values(task, sets, memory)
    host = HipHost(built.library, build_runtime(BuildCache(default_cache_root())), target, memory, objdump())
    workspace = host.workspace_bytes(task.entry, axes)
    scratch = [] if workspace is None else [ctypes.c_void_p(host.allocate(max(1, workspace)))]
    started = time.monotonic()
    code = host.call(task.entry, [*given, *axes, *scratch, ctypes.c_void_p(None)], limit_s)
    if code:
        raise NotModelled(f"the host function returned {code}")
    return time.monotonic() - started, host.mnemonics()


def hip_source(
    task: Task, case: Case, kernel: Path, sets: Any, target: str, limit_s: float
) -> tuple[float, dict[str, int]]:
    """Build for the CPU at 64 lanes and call it in this process."""
    from arena.emulation.amd_isa.faults import NotModelled
    from arena.emulation.hip.toolchain import HipCpuToolchain
    from arena.judge.building import hip_sources
    from arena.toolchains.base import Built, Target
    from arena.toolchains.build_cache import BuildCache
    from arena.toolchains.hip_build import default_cache_root

    (source,) = hip_sources(task, kernel, [case]).values()
    toolchain = HipCpuToolchain(BuildCache(default_cache_root()))
    built = toolchain.build(source, Target("cpu", 64))
    if not isinstance(built, Built):
        raise NotModelled(f"does not build: {built.log[:300]}")
    given, axes = hip_values(task, sets)
    ctypes.CDLL(str(toolchain.runtime), mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(built.library))
    size_of, scratch = getattr(library, f"{task.entry}_workspace", None), []
    if size_of is not None:
        size_of.restype = ctypes.c_size_t
        scratch = [ctypes.create_string_buffer(max(1, size_of(*axes)))]
    started = time.monotonic()
    if getattr(library, task.entry)(*given, *axes, *scratch, ctypes.c_void_p(None)):
        raise NotModelled("the host function failed")
    return time.monotonic() - started, {}


def triton_machine(
    task: Task, case: Case, kernel: Path, sets: Any, target: str, limit_s: float
) -> tuple[float, dict[str, int]]:
    """Have the kernel's Python code launch on a stand-in for the target that executes the machine code."""
    from arena.cross import triton as triton_cross
    from arena.cross.triton import driver as stand_in
    from arena.emulation.amd_isa.memory import DeviceMemory
    from arena.emulation.amd_isa.triton_host import TritonHost
    from arena.numerics.reference import load_module

    memory = DeviceMemory()
    values = values_of(task, sets, memory)
    host = TritonHost(target, memory, objdump())
    seconds = 0.0
    plain_load = stand_in._Utils.load_binary

    def load(self: Any, name: str, binary: bytes, shared_bytes: int, device: int) -> tuple[object, ...]:
        module, _, *rest = plain_load(self, name, binary, shared_bytes, device)
        return (module, host.load(name, binary), *rest)

    def launcher(self: Any, source: Any, metadata: Any) -> Any:
        launch = host.launcher(source, metadata)
        self.utils.block_waves = int(metadata.num_warps)

        def timed(*given: Any) -> None:
            nonlocal seconds
            started = time.monotonic()
            launch(*given)
            seconds += time.monotonic() - started

        return timed

    stand_in._Utils.load_binary = load  # type: ignore[method-assign]
    stand_in.StandInDriver._launcher = launcher  # type: ignore[method-assign]
    triton_cross.install(target)
    host.limit(limit_s)
    getattr(load_module(kernel, "candidate"), task.entry)(*values)
    _leave_pretence()
    return seconds, host.mnemonics()


def _leave_pretence() -> None:
    """Let PyTorch answer as itself again: outputs are compared on the CPU."""
    from torch.overrides import _get_current_function_mode_stack, _pop_mode

    for _ in _get_current_function_mode_stack():  # type: ignore[no-untyped-call]
        _pop_mode()  # type: ignore[no-untyped-call]


def triton_source(
    task: Task, case: Case, kernel: Path, sets: Any, target: str, limit_s: float
) -> tuple[float, dict[str, int]]:
    """Interpret the kernel with the mended interpreter."""
    from arena.emulation import triton as interpreter
    from arena.numerics.reference import load_module

    interpreter.install()
    started = time.monotonic()
    getattr(load_module(kernel, "candidate"), task.entry)(*values_of(task, sets))
    return time.monotonic() - started, {}


def objdump() -> Path:
    """llvm-objdump beside the clang that cross-compilation uses."""
    from arena.cross.hip_clang import find_clang

    clang = find_clang()
    if clang is None:
        raise SystemExit("no clang++ for AMD GPUs: tools/setup.sh installs one")
    return clang.with_name("llvm-objdump")


# --- many kernels


def main() -> int:
    """Run what is asked for; 1 where a result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--target", default="gfx942", choices=["gfx942", "gfx950"])
    parser.add_argument("--limit-s", type=float, default=120.0, help="seconds that the launches of a kernel may take")
    parser.add_argument("--experts", action="store_true", help="the experts instead of the starting kernels")
    parser.add_argument("--no-source", action="store_true", help="leave the source-level emulation out")
    parser.add_argument("--mnemonics", action="store_true", help="count the instructions executed code objects hold")
    parser.add_argument("--again", action="store_true", help="ignore what is kept")
    parser.add_argument("--child", nargs=2, metavar=("KERNEL", "WAY"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    corpus = {task.id: task for task in load_corpus()}
    if asked.child:
        kernel, way = asked.child
        print(json.dumps(asdict(child(corpus[asked.patterns[0]], Path(kernel), asked.target, way, asked.limit_s))))
        return 0
    chosen = list(jobs(corpus, asked.patterns, experts=asked.experts))
    return report([(task, *both(task, kernel, asked)) for task, kernel in chosen], mnemonics=asked.mnemonics)


def jobs(corpus: dict[str, Task], patterns: list[str], *, experts: bool) -> Iterator[tuple[Task, Path]]:
    """Tasks with the kernel to run: the one a task starts from, or of torch2hip the solution that it is checked by."""
    for name in select(tuple(corpus), patterns):
        task = corpus[name]
        kernel = task.expert if experts else task.trusted_kernel
        if kernel is not None and (not experts or kernel.parent == task.path):
            yield task, kernel


def both(task: Task, kernel: Path, asked: argparse.Namespace) -> tuple[Result, Result | None]:
    """The machine code and the source-level emulation, with a line of output."""
    machine = kept(task, kernel, MACHINE, asked)
    source = None if asked.no_source else kept(task, kernel, SOURCE, asked)
    beside = f"; source {source.outcome} {source.seconds:.1f} s" if source else ""
    print(
        f"{task.id} ({machine.case}): {machine.outcome} {machine.seconds:.1f} s{beside}; {machine.detail}", flush=True
    )
    return machine, source


def kept(task: Task, kernel: Path, way: str, asked: argparse.Namespace) -> Result:
    """What is kept of this kernel, or a run of it in a process of its own."""
    parts = [kernel.read_text(), way, asked.target, *(path.read_text() for path in sorted(task.path.glob("*.yaml")))]
    parts += [path.read_text() for path in sorted(EXECUTOR.glob("*.*"))] if way == MACHINE else []
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "unseen-arena" / "machine-code"
    file = cache / f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()}.json"
    if file.is_file() and not asked.again:
        return Result(**json.loads(file.read_text()))
    environment = {**os.environ, "TRITON_DEFAULT_FP_FUSION": "1", "OMP_NUM_THREADS": "1"}
    environment.pop("TRITON_INTERPRET", None)
    if way == SOURCE:
        environment["TRITON_INTERPRET"] = "1"
    command = [sys.executable, str(Path(__file__).resolve()), task.id, "--target", asked.target]
    command += ["--limit-s", str(asked.limit_s), "--child", str(kernel), way]
    limit_s = asked.limit_s + 120
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return Result("not_checked", f"no end within {limit_s:.0f} s", limit_s, "", {})
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return Result("not_checked", f"failed: {last[:300]}", 0.0, "", {})
    result = Result(**json.loads(done.stdout.strip().splitlines()[-1]))
    cache.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(result)))
    return result


def report(results: list[tuple[Task, Result, Result | None]], *, mnemonics: bool) -> int:
    """Print counts, seconds and what is not known."""
    counts = Counter(machine.outcome for _, machine, _ in results)
    agree = sum(machine.outcome == "right" == source.outcome for _, machine, source in results if source)
    print(f"{len(results)} kernels: {', '.join(f'{count} {name}' for name, count in counts.most_common())}")
    print(f"right in machine code and source-level emulation: {agree}")
    seconds = [machine.seconds for _, machine, _ in results if machine.outcome != "not_checked"]
    if seconds:
        print(f"seconds: median {statistics.median(seconds):.2f}, most {max(seconds):.2f}")
    for task, machine, source in results:
        if machine.outcome != "right":
            print(f"{machine.outcome}: {task.id}: {machine.detail[:200]} (source {source.outcome if source else '-'})")
    if mnemonics:
        total = Counter[str]()
        for _, machine, _ in results:
            total.update(machine.mnemonics)
        for name, count in total.most_common():
            print(f"{count:8} {sum(name in machine.mnemonics for _, machine, _ in results):4} {name}")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
