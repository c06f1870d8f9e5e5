"""Time kernels directly, without judge or sandbox: all baselines and experts of the corpus in minutes, to tune them.

    python tools/time_kernels.py --out times.jsonl                          kernel and expert of every task, on the GPU
    python tools/time_kernels.py 'gemm/*' bmm --variants tried              also tried/<suite>/<name>/*.py of each task
    python tools/time_kernels.py 'hip2hip/*' --torch-compile                beside PyTorch and its compiler
    python tools/time_kernels.py --show times.jsonl                         the table of figures that are there already

Nothing here is evidence: a kernel that cheats, or disturbs another, is believed. Files are compiled on all cores.
Meanwhile few processes share the device; one at a time draws, checks and times the timed cases of a task. All files
of a case are timed in turn on the same data, in a device graph of one call on each of several sets. Each line of OUT
is one file on one case: `ms` is the median of the passes, `status` what the reference says. What OUT has already is
not repeated unless the file has changed.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arena.errors import ArenaError
from arena.judge.compile.ahead import AheadCompiler, TritonKernel
from arena.judge.compile.cross_compile import CrossCompilation, Limit
from arena.judge.compile.stage import baseline_program, build_program
from arena.judge.correctness.buffers import Sets
from arena.judge.correctness.inputs import draw_secret
from arena.judge.correctness.verify import check_outputs, compared
from arena.judge.workers.worker import CandidateFailed
from arena.platforms import here
from arena.processes.protocol import Language
from arena.task.corpus.corpora import open_corpora
from arena.task.corpus.selection import select
from arena.task.corpus.task_folder import hidden_from_candidates
from arena.task.definition import Arguments, Case, Task, TaskType, arguments
from arena.task.numerics.reference import Reference, load_module
from arena.worker.binding import Binding
from arena.worker.loaders import HipEntry, TorchEntry

if TYPE_CHECKING:
    import torch

    from arena.results.environment import DeviceFacts

KERNEL, EXPERT, PYTORCH, COMPILED = "kernel", "expert", "pytorch", "torch_compile"
LEAST_SETS, MOST_SETS = 4, 128
SET_BYTES, MOST_BYTES = 512 << 20, 4 << 30
PASSES, EVICTED_BYTES = 5, 128 << 20
COMPILE_S, CACHE = 120.0, "triton"
Record = dict[str, Any]


@dataclass(frozen=True)
class Work:
    """One task, the files to time for it by label, and its timed cases."""

    task: Task
    files: Mapping[str, Path]
    """of the reference, which PyTorch runs, and of kernels"""
    cases: tuple[Case, ...]

    def digest(self, label: str) -> str:
        """Return what a figure depends on: the file, and the task."""
        return hashlib.sha256(self.task.content_hash.encode() + self.files[label].read_bytes()).hexdigest()[:16]


class InPlace:
    """What `Binding` takes for a platform: the buffer is this process's own."""

    def __init__(self, sets: Sets) -> None:
        self.tensor = sets.raw

    def open(self, *_: object) -> InPlace:
        """Return itself, as the buffer that is asked for."""
        return self

    def close(self) -> None:
        """Leave the buffer to its owner."""


class PythonFunction:
    """A Triton file without the operators' guard, which would also watch what is done here."""

    def __init__(self, path: Path, entry: str) -> None:
        self._function = getattr(load_module(path, "candidate"), entry)
        self._values: list[list[object]] = []

    def bind(self, binding: Binding | None) -> None:
        """Keep the argument lists."""
        self._values = [] if binding is None else binding.values

    def call(self, index: int) -> None:
        """Call the function on one set."""
        self._function(*self._values[index])

    def copy_back(self, index: int) -> None:
        """Outputs were written in place."""


def gathered(
    patterns: Sequence[str], variants: Path | None, arch: str, *, torch_compile: bool = False, heldout: bool = False
) -> list[Work]:
    """Return what there is to time, in the order of the corpus. HIP tasks are timed beside PyTorch."""
    corpora, found = open_corpora(()), []
    for name in select(corpora.ids, list(patterns) or ["*"]):
        task = corpora.load(name).on(arch)
        files = {KERNEL: task.baseline_kernel or task.reference_path}
        if task.expert is not None:
            files[EXPERT] = task.expert
        if not task.task_type.triton:
            files |= {PYTORCH: task.reference_path} if task.baseline_kernel else {}
            files |= {COMPILED: task.reference_path} if torch_compile else {}
        if variants is not None:
            suffix = Path(task.task_type.kernel_file).suffix
            files |= {path.stem: path for path in sorted((variants / task.id).glob(f"*{suffix}"))}
        cases = tuple(case for case in (task.cases if heldout else task.seen) if case.timed)
        if cases:
            found.append(Work(task, files, cases))
    return found


def compile_all(work: Sequence[Work], facts: DeviceFacts, claims: Path) -> None:
    """Compile every file for every case without the device: Triton into `claims`, HIP into the judge's build cache.

    A task that is ready has a file in `claims`, too.
    """
    cross_compilation = CrossCompilation()
    compiler = AheadCompiler(cross_compilation)

    def compiled(one: Work) -> None:
        limit = Limit(COMPILE_S, hidden_from_candidates(one.task))
        for file in set(one.files.values()) - {one.task.reference_path}:
            with suppress(ArenaError, CandidateFailed):  # said where it is loaded
                if one.task.task_type.triton:
                    kernel = TritonKernel(one.task, file, facts.arch)
                    compiler.compile(kernel, one.cases, limit, claims / CACHE, threading.Event())
                else:
                    build_program(one.task, file, one.cases, facts)
        _marker(claims, one, "compiled").touch()

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compiled, work))
    cross_compilation.close()


def _marker(claims: Path, one: Work, what: str) -> Path:
    return claims / f"{one.task.id.replace('/', '.')}.{what}"


def loaded(one: Work, label: str, case: Case, facts: DeviceFacts) -> PythonFunction | HipEntry | TorchEntry:
    """Load one file as this process's own code."""
    task, file = one.task, one.files[label]
    if file == task.reference_path:
        copies = baseline_program(replace(task, task_type=TaskType.TORCH2HIP), one.cases, facts).copies
        return TorchEntry(file, copies, compiled=label == COMPILED)
    program = build_program(task, file, one.cases, facts).program
    path = program.files[program.key(case)]
    return (PythonFunction if program.language is Language.TRITON else HipEntry)(path, task.entry)


class CaseTimer:
    """The files of one task on one case, on the same data."""

    def __init__(self, worked_out: Arguments, reference: Reference) -> None:
        self._arguments, self._reference = worked_out, reference
        platform = here("auto")
        held = max(1, worked_out.held_bytes)
        self._count = max(1, min(max(LEAST_SETS, SET_BYTES // held), MOST_SETS, MOST_BYTES // held))
        self._inputs = draw_secret(worked_out, reference, self._count, platform.torch_device)
        self._sets = Sets(platform, worked_out, self._count)
        self._binding = Binding(self._sets.bind_message(), InPlace(self._sets), None)  # type: ignore[arg-type]

    def close(self) -> None:
        """Free the buffers."""
        self._binding.close()
        self._sets.close()

    def checked(self, entry: PythonFunction | HipEntry | TorchEntry) -> tuple[str, float | None]:
        """Call on the first set, and compare with the reference: what is wrong, and the error over the tolerance."""
        import torch

        entry.bind(self._binding)
        self._fill()
        entry.call(0)
        entry.copy_back(0)
        torch.cuda.synchronize()
        if unwritten := self._sets.unwritten([0]):
            return f"{unwritten} is not written", None
        inputs = {name: values[0] for name, values in self._inputs.items()}
        outputs = {spec.name: self._sets.view(spec.name)[0] for spec in compared(self._arguments)}
        found = check_outputs(self._arguments, self._reference, inputs, outputs)
        return found.detail or str(found.status), found.error_ratio

    def captured(self, entry: PythonFunction | HipEntry | TorchEntry) -> torch.cuda.CUDAGraph:
        """Return a graph of one call on each set."""
        import torch

        entry.bind(self._binding)
        self._fill()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for index in range(self._count):
                entry.call(index)
        return graph

    def passes_ms(self, graphs: Mapping[str, torch.cuda.CUDAGraph]) -> dict[str, list[float]]:
        """Time the graphs in turn, in an order of its own each time: milliseconds a call."""
        import torch

        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        evicted = torch.zeros(EVICTED_BYTES // 4, device="cuda")
        found: dict[str, list[float]] = {label: [] for label in graphs}
        for turn in range(PASSES + 1):
            for label in random.sample(sorted(graphs), len(graphs)):
                self._fill()
                evicted.add_(1)
                torch.cuda.synchronize()
                begin.record()
                graphs[label].replay()
                end.record()
                end.synchronize()
                if turn:  # the first replay uploads the graph
                    found[label].append(begin.elapsed_time(end) / self._count)
        return found

    def _fill(self) -> None:
        self._sets.write(self._inputs)
        self._sets.poison()
        self._binding.resolve_addresses()


def timed_case(one: Work, case: Case, labels: Sequence[str], facts: DeviceFacts) -> Iterator[Record]:
    """Yield a record for each file on this case."""
    worked_out, reference = arguments(one.task, case), Reference(one.task.reference_path)
    timer = CaseTimer(worked_out, reference)
    roofline_ms = facts.roofline_ms(worked_out.flops, worked_out.num_bytes, worked_out.number_format)
    records, graphs, entries = {}, {}, []
    for label in labels:
        record: Record = {"task": one.task.id, "case": case.id, "label": label, "digest": one.digest(label)}
        records[label] = record | {"shape": case.label, "bytes": worked_out.num_bytes, "roofline_ms": roofline_ms}
        try:
            entry = loaded(one, label, case, facts)
            entries.append(entry)
            records[label]["status"], records[label]["error_ratio"] = timer.checked(entry)
            graphs[label] = timer.captured(entry)
        except Exception as problem:
            records[label]["status"] = f"{type(problem).__name__}: {problem}"[:300]
            if "CUDA error" in str(problem) or "error 7" in str(problem):
                yield records[label] | {"fatal": True}
                return
    for label, passes in timer.passes_ms(graphs).items():
        records[label] |= {"ms": statistics.median(passes), "least_ms": min(passes)}
    yield from records.values()
    graphs.clear()
    entries.clear()
    timer.close()


def shard(work: Sequence[Work], out: Path, claims: Path) -> int:
    """Time what is compiled and not claimed; one process at a time is on the device. Returns an exit code."""
    facts = here("auto").facts()
    waiting = list(work)
    while waiting:
        ready = next((one for one in waiting if _marker(claims, one, "compiled").is_file()), None)
        if ready is None:
            time.sleep(0.2)
            continue
        waiting.remove(ready)
        claim = _marker(claims, ready, "claimed")
        with suppress(FileExistsError):
            os.close(os.open(claim, os.O_CREAT | os.O_EXCL))
            if not _timed(ready, out, claims, facts):
                claim.unlink()
                return 3
    return 0


def _timed(one: Work, out: Path, claims: Path, facts: DeviceFacts) -> bool:
    """Time all cases of a task, and return whether this process can go on."""
    import torch

    for case in one.cases:
        labels = due(one, case, kept(out))
        if not labels:
            continue
        with _locked(claims / "device"):
            records = list(timed_case(one, case, labels, facts))
            torch.cuda.empty_cache()
        with _locked(claims / "out"), out.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
        if any(record.get("fatal") for record in records):
            return False
    return True


def due(one: Work, case: Case, known: Sequence[Record]) -> list[str]:
    """Return the files of a task that have no figure for a case, and its own kernel to compare them with."""
    mine = {r["label"]: r for r in known if (r["task"], r["case"]) == (one.task.id, case.id)}
    has = {label for label, r in mine.items() if label in one.files and r["digest"] == one.digest(label)}
    wanted = [label for label in one.files if label not in has]
    if wanted and KERNEL in has and not mine[KERNEL].get("fatal"):
        wanted.insert(0, KERNEL)
    return wanted


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def kept(out: Path) -> list[Record]:
    """Return the records of a file, of several of one kernel on one case the last."""
    records = [json.loads(line) for line in (out.read_text(encoding="utf-8").splitlines() if out.is_file() else ())]
    return list({(record["task"], record["case"], record["label"]): record for record in records}.values())


def table(records: Sequence[Record]) -> str:
    """Return a line for each case: the kernel's latency, then each file's speedup and share of the roofline."""
    cases: dict[tuple[str, str], dict[str, Record]] = {}
    for record in records:
        cases.setdefault((record["task"], record["case"]), {})[record["label"]] = record
    lines = []
    for (task, case), found in sorted(cases.items()):
        base_ms = found.get(KERNEL, {}).get("ms")
        cells = []
        for label, record in found.items():
            ms, floor = record.get("ms"), record["roofline_ms"]
            speed = f"{base_ms / ms:.2f}x" if ms and base_ms and label != KERNEL else f"{ms or 0:.4f} ms"
            share = f" {floor / ms:.2f}" if ms and floor else ""
            wrong = "" if record.get("status") == "passed" else f" [{record.get('status')}]"
            cells.append(f"{label} {speed}{share}{wrong}")
        lines.append(f"{task} {case}: {'; '.join(cells)}")
    return "\n".join(lines)


def run_shards(count: int, command: Sequence[str], deadline: float) -> None:
    """Run processes that share the work, each started anew where a kernel has broken its device context."""

    def one(_: int) -> None:
        while time.monotonic() < deadline:
            with suppress(subprocess.TimeoutExpired):
                left_s = deadline - time.monotonic()
                if subprocess.run(command, check=False, timeout=left_s).returncode == 0:
                    return

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(one, range(count)))


def main() -> None:
    """Compile, time, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help="names or patterns; default: all")
    parser.add_argument("--variants", type=Path, help="a folder with <type>/<suite>/<name>/*.py or *.hip")
    parser.add_argument("--heldout", action="store_true", help="also the held-out cases that are timed")
    parser.add_argument("--torch-compile", action="store_true", help="HIP tasks: also PyTorch's compiler (slow)")
    parser.add_argument("--out", type=Path, default=Path("times.jsonl"), help="a line for each file and case")
    parser.add_argument("--show", type=Path, help="only print the table of this file")
    parser.add_argument("--jobs", type=int, default=4, help="processes that share the device")
    parser.add_argument("--seconds", type=float, default=3600.0, help="stop after this time")
    parser.add_argument("--shard", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.show:
        print(table(kept(asked.show)))
        return
    facts = here("auto").facts()
    if facts.emulated:
        sys.exit("time_kernels.py needs a GPU: on the CPU platform kernels are emulated")
    work = gathered(asked.tasks, asked.variants, facts.arch, torch_compile=asked.torch_compile, heldout=asked.heldout)
    if asked.shard:
        sys.exit(shard(work, asked.out, asked.shard))
    deadline = time.monotonic() + asked.seconds
    claims = Path(asked.out).with_suffix(".claims")
    shutil.rmtree(claims, ignore_errors=True)
    (claims / CACHE).mkdir(parents=True)
    os.environ["TRITON_CACHE_DIR"] = str(claims / CACHE)
    threading.Thread(target=compile_all, args=(work, facts, claims), daemon=True).start()
    run_shards(asked.jobs, [sys.executable, *sys.argv, "--shard", str(claims)], deadline)
    print(table(kept(asked.out)), flush=True)
    os._exit(0)  # compilations that are under way are of no use any more


if __name__ == "__main__":
    main()
