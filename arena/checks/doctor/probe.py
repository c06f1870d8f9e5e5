"""The device seen from a child, `python -m arena.checks.doctor.probe FILE PLATFORM`.

It does what a judge does with one buffer: allocates it, has a sandboxed worker map it and run a kernel on it,
checks the result, has it unmapped and frees it.
"""

from __future__ import annotations

import secrets
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from arena.checks.doctor.children import problem_of, write_down
from arena.checks.doctor.evidence import DATA, DeviceSeen, ExchangeSeen, MemorySeen, ProbeSeen
from arena.errors import InfrastructureError
from arena.judge.compile.hip_toolchains import toolchain_for
from arena.judge.workers.worker import CandidateFailed, ForkServers, Worker, WorkerFolder
from arena.platforms import here
from arena.platforms.base import Platform, SharedBuffer
from arena.platforms.rocm.amd_code_object import CodeObject, bundled
from arena.platforms.rocm.hip_launch import LaunchSeen
from arena.platforms.rocm.platform import RocmPlatform
from arena.platforms.toolchains.base import Built, NativeWorker, Source, Target
from arena.processes.protocol import Bind, Call, Language, Load, Prepare, TensorArgument
from arena.results.environment import DeviceFacts

ENTRY = "arena_probe"
_ELEMENTS = 4096
_ITEM_BYTES = 4
_SMALL_BYTES = 1 << 20
_LARGE_BYTES = 256 << 20
_TIMEOUT_S = 60.0


class Probe:
    """Sees one thing after the other, and writes each down at once."""

    def __init__(self, file: Path, platform: str) -> None:
        self._file, self._name = file, platform
        self._seen = ProbeSeen()

    def run(self) -> None:
        """See everything, or note what stopped it."""
        problem = problem_of(self._probe)
        self._note(replace(self._seen, problem=problem))

    def _probe(self) -> None:
        device = here(self._name)
        self._note(replace(self._seen, device=_device(device)))
        facts = device.facts()
        with ExitStack() as cleanup:
            library, native_worker, seconds = _compile(
                facts, Path(cleanup.enter_context(tempfile.TemporaryDirectory()))
            )
            self._note(replace(self._seen, compiled_s=seconds))
            if isinstance(device, RocmPlatform):
                self._note(replace(self._seen, launched=_launched(device, library, facts.arch)))
            peer = Peer(device, library, native_worker)
            cleanup.callback(peer.close)
            try:
                exchange, _ = peer.exchange(_SMALL_BYTES)
                self._note(replace(self._seen, exchange=exchange))
                before = held_bytes(device)
                _, during = peer.exchange(_LARGE_BYTES)
                self._note(replace(self._seen, memory=MemorySeen(_LARGE_BYTES, before, during, held_bytes(device))))
            except CandidateFailed as failure:
                raise InfrastructureError(f"the worker: {failure}") from None

    def _note(self, seen: ProbeSeen) -> None:
        self._seen = seen
        write_down(self._file, seen)


class Peer:
    """A worker with the probe kernel loaded."""

    def __init__(self, device: Platform, library: Path, native_worker: NativeWorker) -> None:
        self._device = device
        self._home = tempfile.TemporaryDirectory(prefix="arena-worker-")
        self._fork_servers = ForkServers(device.name, spins=device.spins, interprets=device.name == "cpu")
        self._worker: Worker | None = None
        self._library, self._native_worker = library, native_worker

    def exchange(self, num_bytes: int) -> tuple[ExchangeSeen, int]:
        """Share a new buffer, have the kernel answer in it, take it back; also the bytes in use while it was shared."""
        worker = self._started()
        buffer = self._device.allocate(num_bytes)
        try:
            return self._call(worker, buffer), held_bytes(self._device)
        finally:
            buffer.close()

    def _call(self, worker: Worker, buffer: SharedBuffer) -> ExchangeSeen:
        import torch

        whole = buffer.tensor.fill_(0xA5).view(torch.int32)  # touches every page of it
        x, y = whole[:_ELEMENTS], whole[_ELEMENTS : 2 * _ELEMENTS]
        x.copy_(torch.arange(_ELEMENTS, dtype=torch.int32) + secrets.randbits(30))
        self._device.synchronize()
        files = [] if buffer.file is None else [buffer.file]
        worker.ask(Bind(buffer.handle, 1, _arguments(buffer.handle.num_bytes), (_ELEMENTS,)), _TIMEOUT_S, files)
        worker.ask(Call(0), _TIMEOUT_S)
        wrong = int((y[1:] != x[1:] + 1).sum())
        seen = ExchangeSeen(int(y[0]), _ELEMENTS - 1, wrong, worker.isolation)
        worker.release(_TIMEOUT_S)
        return seen

    def _started(self) -> Worker:
        if self._worker is None:
            home = Path(self._home.name)
            self._worker = self._fork_servers.spawn(
                WorkerFolder(home, home, self._library.parent, self._native_worker), ()
            )
            self._worker.ask(Prepare(), _TIMEOUT_S)
            self._worker.ask(Load(Language.HIP, str(self._library), ENTRY), _TIMEOUT_S)
        return self._worker

    def close(self) -> None:
        """End the worker and its fork server."""
        if self._worker is not None:
            self._worker.kill_worker()
        self._fork_servers.close()
        self._home.cleanup()


def probe_source() -> Source:
    """The probe kernel; it belongs to no task, so its header is empty."""
    return Source((DATA / "probe.hip").read_text(encoding="utf-8"), "", "probe.hip")


def held_bytes(device: Platform) -> int:
    """Bytes in use: on a GPU by whomever, on the CPU the shared memory that this process maps."""
    if device.torch_device != "cpu":
        device.free_cache()
        memory = device.memory()
        return memory.total_bytes - memory.free_bytes
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssShmem:"))


def _device(device: Platform) -> DeviceSeen:
    facts = device.facts()
    hip = device.hip if isinstance(device, RocmPlatform) else None
    return DeviceSeen(
        facts,
        device.multiprocessors(),
        device.memory(),
        device.remarks(),
        asked_hip=hip.detail if hip else "",
        hip_devices=hip.devices if hip else 0,
    )


def _compile(facts: DeviceFacts, cache: Path) -> tuple[Path, NativeWorker, float]:
    """The probe kernel and the worker for this device, compiled here and now: the cache is a new one."""
    target = Target(facts.arch, facts.wave_size)
    toolchain = toolchain_for(target, cache)
    built = toolchain.build(probe_source(), target)
    if not isinstance(built, Built):
        raise InfrastructureError(f"the probe kernel does not compile for {facts.arch}: {built.log.strip()}")
    return built.library, toolchain.native_worker(facts.arch), built.seconds


def _launched(device: RocmPlatform, library: Path, arch: str) -> LaunchSeen:
    """The kernel as clang left it in the library, launched without the library's own host code."""
    codes = bundled(library.read_bytes(), arch)
    if len(codes) != 1:
        return LaunchSeen(f"the library holds {len(codes)} code objects for {arch} that can be read, expected one")
    code = library.with_name("probe.co")
    code.write_bytes(codes[0])
    kernel = next(iter(CodeObject(codes[0]).kernels.values()))
    return device.launch_code_object(code, kernel.name)


def _arguments(num_bytes: int) -> tuple[TensorArgument, ...]:
    """Input and output, side by side at the start of the buffer."""
    return tuple(
        TensorArgument(name, "int32", (_ELEMENTS,), (1,), index * _ELEMENTS * _ITEM_BYTES, num_bytes)
        for index, name in enumerate(("x", "y"))
    )


if __name__ == "__main__":
    Probe(Path(sys.argv[1]), sys.argv[2]).run()
