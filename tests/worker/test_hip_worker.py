"""The native worker of HIP candidates, on the CPU: it passes what it is told to, and holds nothing that computes."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from arena.judge.workers import hip_messages as flat
from arena.platforms.cpu.hip.toolchain import HipCpuToolchain
from arena.platforms.cpu.platform import CpuPlatform, MemoryFile
from arena.platforms.toolchains.base import Built, NativeWorker, Source, Target
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_compilers import find
from arena.processes.flags import new_flags
from arena.processes.protocol import (
    ASCENDING,
    DESCENDING,
    LAUNCH_ONLY,
    Argument,
    Arrange,
    Bind,
    Blame,
    Call,
    Done,
    Failed,
    FromWorker,
    Language,
    Load,
    Pass,
    Prepare,
    Release,
    ScalarArgument,
    TensorArgument,
    ToWorker,
)
from arena.processes.wire import Channel, ChannelClosed

pytestmark = [
    pytest.mark.skipif(find()[0].missing, reason="no C++ compiler on this machine"),
]
HEADER = "".join(f"#include <{name}>\n" for name in ("stdint.h", "stdio.h", "errno.h", "unistd.h", "hip/hip_runtime.h"))
KERNEL = """#include "task.h"
__global__ void put(double* y, int at, double value) { y[at] = value; }
__global__ void fetch(double* y, int at, const double* const* rows, int row) { y[at] = rows[row][0]; }
__global__ void overrun(unsigned char* scratch, int at) { scratch[at] = 1; }
__global__ void poison(double* y, const unsigned char* scratch) { y[0] = scratch[0]; y[1] = scratch[79]; }

extern "C" int many(double* y, int64_t a, float f0, int32_t b, float f1, float f2, float f3, float f4, float f5,
                    float f6, float f7, bool c, float f8, float f9, int64_t d, int64_t e, int64_t g, hipStream_t s) {
    const double values[] = {double(a), f0, double(b), f1, f2, f3, f4, f5, f6, f7, double(c), f8, f9, double(d),
                             double(e), double(g), double(s != nullptr)};
    for (int i = 0; i < 17; ++i) put<<<1, 1, 0, s>>>(y, i, values[i]);
    return 0;
}
extern "C" int returns(double* y, int64_t code, hipStream_t) { return int(code); }
__global__ void turns(double* y, unsigned* next, int first) {
    if (threadIdx.x % 5 == 0) y[first + atomicAdd(next, 1u)] = blockIdx.x * 1000.0 + threadIdx.x;
}
extern "C" int orders(double* y, hipStream_t s) {
    unsigned* const next = reinterpret_cast<unsigned*>(y + 512);
    (void)hipMemsetAsync(next, 0, 8, s);
    turns<<<5, 1, 0, s>>>(y, next, 0);
    turns<<<dim3(1), dim3(100), 0, s>>>(y, next + 1, 8);
    return 0;
}
extern "C" int deep(double* y, int64_t blocks, hipStream_t s) {
    put<<<dim3(1, 1, static_cast<unsigned>(blocks)), 1, 0, s>>>(y, 0, 3.0);
    (void)hipMemsetAsync(y + 1, 0, 8, s);
    return hipGetLastError();
}
struct alignas(8) Pair { float a, b; };
__global__ void pair(float* y, int at) { *reinterpret_cast<Pair*>(y + at) = {1.0f, 1.0f}; }
extern "C" int pairs(double* y, int64_t at, hipStream_t s) {
    pair<<<1, 1, 0, s>>>(reinterpret_cast<float*>(y), static_cast<int>(at));
    return hipGetLastError();
}
extern "C" int probes(double* y, hipStream_t s) {
    setvbuf(stdout, nullptr, _IONBF, 0);
    put<<<1, 1, 0, s>>>(y, 0, fwrite(y, 1, 8, stdout) == 8 ? 1.0 : 2.0);
    return 0;
}
extern "C" int becomes(double*, hipStream_t) {
    return execl("/bin/true", "true", nullptr) == -1 ? errno : 0;
}
extern "C" int touches(double* y, hipStream_t) { y[0] = 1.0; return 0; }
extern "C" int copies(double* y, int64_t bytes, hipStream_t) {
    static char here[1 << 20];
    (void)hipMemcpy(here, y, bytes, hipMemcpyDeviceToHost);
    return 0;
}
extern "C" int gathers(double* y, const double* const* rows, const double* x, hipStream_t s) {
    for (int i = 0; i < 2; ++i) fetch<<<1, 1, 0, s>>>(y, i, rows, i);
    return 0;
}
extern "C" int strays(double* y, int64_t how, hipStream_t stream) {
    hipStream_t own = nullptr;
    (void)hipStreamCreate(&own);
    put<<<1, 1, 0, stream>>>(y, 0, 1.0);
    if (how == 1) put<<<1, 1>>>(y, 0, 1.0);
    if (how == 2) hipLaunchKernelGGL(put, 1, 1, 0, own, y, 0, 1.0);
    if (how == 3) (void)hipMemsetAsync(y, 0, 8);
    if (how == 4) for (int i = 0; i < 3; ++i) put<<<dim3(1), dim3(1), 0, own>>>(y, 0, 1.0);
    if (how == 5) (void)hipMemsetAsync(y, 0, 8, stream);
    if (how == 5) (void)hipMemcpyAsync(y, y + 1, 8, hipMemcpyDeviceToDevice, stream);
    return 0;
}
extern "C" size_t scratches_workspace(int64_t bytes) { return bytes; }
extern "C" int scratches(double* y, int64_t bytes, void* scratch, hipStream_t s) {
    poison<<<1, 1, 0, s>>>(y, static_cast<unsigned char*>(scratch));
    overrun<<<1, 1, 0, s>>>(static_cast<unsigned char*>(scratch), 79);
    return 0;
}
"""


class Kit(NamedTuple):
    """A worker's program, and a library for it."""

    worker: NativeWorker
    library: Path


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    toolchain = HipCpuToolchain(BuildCache(tmp_path_factory.mktemp("builds")))
    built = toolchain.build(Source(KERNEL, HEADER), Target("cpu"))
    assert isinstance(built, Built), built.log
    return Kit(toolchain.native_worker("cpu"), built.library)


class Started:
    """A worker without a sandbox around it, and the buffer that it shares with the test."""

    def __init__(self, kit: Kit, channel: Channel[ToWorker, FromWorker], process: subprocess.Popen[bytes]) -> None:
        self._kit, self._channel, self.process = kit, channel, process
        buffer = CpuPlatform().allocate(1 << 16)
        assert isinstance(buffer, MemoryFile)
        self.buffer = buffer

    def ask(self, message: ToWorker, *files: int) -> FromWorker:
        self.send(message, *files)
        return self.receive()

    def send(self, message: ToWorker, *files: int) -> None:
        self._channel.send(message, list(files))

    def receive(self) -> FromWorker:
        return self._channel.receive(20.0)[0]

    def answers(self) -> bool:
        return self._channel.has_next()

    def bind(self, entry: str, *arguments: Argument, axes: tuple[int, ...] = (), sets: int = 1) -> FromWorker:
        loaded = self.ask(Load(Language.HIP, str(self._kit.library), entry))
        if not isinstance(loaded, Done):
            return loaded
        assert self.buffer.file is not None
        return self.ask(Bind(self.buffer.handle, sets, (tensor("y"), *arguments), axes), self.buffer.file)

    def values(self, count: int, at: int = 0) -> list[float]:
        return list(struct.unpack_from(f"<{count}d", bytes(self.buffer.tensor.numpy()), at))


def tensor(name: str, offset: int = 0, pitch: int = 4096, of: str = "", count: int = 8) -> TensorArgument:
    return TensorArgument(name, "int64" if of else "float64", (count,), (1,), offset, pitch, of)


@contextmanager
def started(kit: Kit, *files: int) -> Iterator[Started]:
    """`files`: those of its flags, if it is to have some."""
    ours, theirs = socket.socketpair()
    passed = [theirs.fileno(), *files]
    line = [str(kit.worker.program), *map(str, passed)]
    with (
        ours,
        subprocess.Popen(line, pass_fds=passed, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
    ):
        theirs.close()
        one = Started(kit, Channel(ours, FromWorker, encode=flat.encode), process)
        try:
            yield one
        finally:
            process.kill()
            one.buffer.close()


def failure(answer: FromWorker) -> tuple[Blame, str]:
    assert isinstance(answer, Failed), answer
    return answer.blame, answer.detail


def test_arguments_of_every_kind_arrive_in_order(kit: Kit) -> None:
    scalars = [
        *(("int64", -(1 << 40)), ("float32", 0.5), ("int32", -7), *(("float32", float(n)) for n in range(1, 8))),
        *(("bool", True), ("float32", -8.25), ("float32", 9.5)),
    ]
    arguments = [ScalarArgument(f"s{n}", dtype, value) for n, (dtype, value) in enumerate(scalars)]
    with started(kit) as worker:
        assert worker.bind("many", *arguments, axes=(3, 1 << 33, -5)) == Done(0.0)
        assert worker.ask(Call(0)) == Done(0.0)
        assert worker.values(17) == [*(float(value) for _, value in scalars), 3.0, 2.0**33, -5.0, 1.0]


def test_blocks_and_threads_begin_in_the_order_of_the_call(kit: Kit) -> None:
    ascending = [0.0, 1e3, 2e3, 3e3, 4e3], [float(n) for n in range(0, 100, 5)]
    with started(kit) as worker:
        worker.bind("orders")
        seen = []
        for order in (ASCENDING, DESCENDING, 77, 77, 78, (1 << 63) + 5, ASCENDING):
            assert worker.ask(Call(0, order)) == Done(0.0)
            seen.append((worker.values(5), worker.values(20, 64)))
        assert seen[0] == seen[6] == ascending
        assert seen[1] == (ascending[0][::-1], ascending[1][::-1])
        assert seen[2] == seen[3] != seen[4] != seen[5]
        assert all((sorted(blocks), sorted(threads)) == ascending for blocks, threads in seen)
        assert worker.ask(Arrange("one", (0,), graph=False)) == Done(0.0)
        assert isinstance(worker.ask(Pass("one")), Done)
        assert (worker.values(5), worker.values(20, 64)) == ascending, "timed calls ascend"


def test_grids_are_checked_also_where_nothing_runs(kit: Kit) -> None:
    with started(kit) as worker:
        before = worker.values(2)
        worker.bind("deep", axes=(65535,))
        assert worker.ask(Call(0, LAUNCH_ONLY)) == Done(0.0)
        assert worker.values(2) == before
        worker.bind("deep", axes=(65536,))
        for order in (LAUNCH_ONLY, ASCENDING):
            blame, said = failure(worker.ask(Call(0, order)))
            assert blame is Blame.GRID_LIMIT and "a grid of 1 x 1 x 65536 blocks at " in said
        worker.bind("deep", axes=(2,))
        assert worker.ask(Call(0)) == Done(0.0)
        assert worker.values(2) == [3.0, 0.0]


def test_a_misaligned_pair_ends_the_process(kit: Kit) -> None:
    with started(kit) as worker:
        worker.bind("pairs", axes=(2,))
        assert worker.ask(Call(0)) == Done(0.0)
        worker.bind("pairs", axes=(3,))
        with pytest.raises(ChannelClosed):
            worker.ask(Call(0))


def test_codes_and_missing_things_are_told_apart(kit: Kit) -> None:
    with started(kit) as worker:
        assert failure(worker.ask(Call(0))) == (Blame.LAUNCH_ERROR, "nothing is bound")
        assert failure(worker.bind("absent"))[0] is Blame.LOAD_ERROR
        assert failure(worker.ask(Load(Language.HIP, "/nowhere.so", "f")))[0] is Blame.LOAD_ERROR
        worker.bind("returns", axes=(1,))
        assert failure(worker.ask(Call(0))) == (Blame.LAUNCH_ERROR, "`returns` returned error 1 (hipErrorInvalidValue)")
        numbers = ((719, "719 (hipErrorLaunchFailure)"), (-7, "-7"), (12345, "12345"), (999, "999 (hipErrorUnknown)"))
        for code, named in numbers:
            worker.bind("returns", axes=(code,))
            assert failure(worker.ask(Call(0))) == (Blame.LAUNCH_ERROR, f"`returns` returned error {named}")
        worker.bind("returns", axes=(2,))
        said = "`returns` returned error 2 (hipErrorOutOfMemory): the device has no memory left for it"
        assert failure(worker.ask(Call(0))) == (Blame.OUT_OF_MEMORY, said)
        assert failure(worker.ask(Arrange("long", (0,), graph=True)))[0] is Blame.NOT_CAPTURABLE
        assert worker.ask(Release()) == Done(0.0)


def test_passes_are_timed_by_flags(kit: Kit) -> None:
    """Both sides poll: the worker waits for the judge, and sends nothing but that it failed."""
    flags, file = new_flags()
    with started(kit, file) as worker:
        os.close(file)
        assert isinstance(worker.bind("returns", ScalarArgument("code", "int64", 0)), Done)
        assert worker.ask(Arrange("long", (0, 0, 0), graph=False)) == Done(0.0)
        for _ in range(2):
            worker.ask(Prepare())
            worker.send(Pass("long"))
            found = flags.time_pass(20.0, lambda: False)
            assert found is not None
            assert 0 < flags.worker_s <= found[1] - found[0]
            assert not worker.answers()
        worker.send(Pass("another"))
        assert flags.time_pass(20.0, worker.answers) is None
        assert isinstance(worker.receive(), Failed)


def test_it_becomes_no_other_program(kit: Kit) -> None:
    with started(kit) as worker:
        worker.bind("becomes")
        assert failure(worker.ask(Call(0))) == (Blame.LAUNCH_ERROR, "`becomes` returned error 1 (hipErrorInvalidValue)")


def test_device_memory_is_out_of_reach_in_timed_calls_too(kit: Kit) -> None:
    """So that nothing tells a checked call from a timed one."""
    with started(kit) as worker:
        worker.bind("probes", sets=2)
        assert worker.ask(Call(0)) == Done(0.0)
        assert worker.values(1) == [2.0]
        worker.ask(Arrange("long", (1,), graph=False))
        worker.ask(Prepare())
        assert isinstance(worker.ask(Pass("long")), Done)
        assert worker.values(1, at=4096) == [2.0]
        worker.bind("touches")
        worker.ask(Arrange("long", (0,), graph=False))
        with pytest.raises(ChannelClosed):
            worker.ask(Pass("long"))
        assert worker.process.wait() == -signal.SIGSEGV
        assert worker.process.stderr is not None
        assert b"host code touched device memory" in worker.process.stderr.read()


def test_few_bytes_a_call_may_be_copied_to_the_host(kit: Kit) -> None:
    with started(kit) as worker:
        worker.bind("copies", axes=(1 << 12,))
        assert [worker.ask(Call(0)) for _ in range(3)] == [Done(0.0)] * 3
        worker.bind("copies", axes=((1 << 12) + 1,))
        blame, detail = failure(worker.ask(Call(0)))
        assert blame is Blame.RULE_VIOLATION
        assert "copies 4097 bytes from the device to the host" in detail


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (1, "launches a kernel at kernel.hip:{}"),
        (2, "launches a kernel at kernel.hip:{}"),
        (3, "fills memory at kernel.hip:{}"),
        (4, "launches a kernel at kernel.hip:{} (the first of 3)"),
    ],
)
def test_work_on_another_stream_is_a_broken_rule_with_its_line(kit: Kit, how: int, said: str) -> None:
    line = next(number for number, text in enumerate(KERNEL.splitlines(), 1) if f"how == {how}" in text)
    with started(kit) as worker:
        worker.bind("strays", axes=(how,))
        blame, detail = failure(worker.ask(Call(0)))
        assert blame is Blame.RULE_VIOLATION
        assert detail.startswith(f"`strays` {said.format(line)} on another stream than")
        worker.ask(Prepare())
        worker.bind("strays", axes=(5,))
        assert worker.ask(Call(0)) == Done(0.0)


def test_offsets_become_addresses_whenever_there_are_new_data(kit: Kit) -> None:
    with started(kit) as worker:
        memory: Any = worker.buffer.tensor.numpy()
        rows, x = 8192, 16384
        worker.bind("gathers", tensor("rows", rows, of="x", count=2), tensor("x", x), sets=2)
        for first in (0.0, 100.0):
            for k in range(2):
                struct.pack_into("<2q", memory, rows + 4096 * k, 8, 24)
                struct.pack_into("<4d", memory, x + 4096 * k, *(first + 10 * k + n for n in range(4)))
            assert worker.ask(Prepare()) == Done(0.0)
            for k in range(2):
                worker.ask(Call(k))
                assert worker.values(2, at=4096 * k) == [first + 10 * k + 1, first + 10 * k + 3]


def test_scratch_is_poisoned_and_must_be_asked_for(kit: Kit) -> None:
    with started(kit) as worker:
        worker.bind("scratches", axes=(80,))
        assert worker.ask(Call(0)) == Done(0.0)
        assert worker.values(2) == [255.0, 255.0]
        worker.bind("scratches", axes=(1,))
        said = "it wrote byte 79 of its scratch memory, of which it asked for 1 bytes"
        assert failure(worker.ask(Call(0))) == (Blame.LAUNCH_ERROR, said)


def test_the_process_holds_neither_python_nor_pytorch(kit: Kit) -> None:
    with started(kit) as worker:
        worker.bind("returns", axes=(0,))
        mapped = Path(f"/proc/{worker.process.pid}/maps").read_text(encoding="utf-8")
        assert "kernel.so" in mapped
        assert not [line for line in mapped.splitlines() if "python" in line.lower() or "torch" in line]
        held = [os.readlink(file) for file in Path(f"/proc/{worker.process.pid}/fd").iterdir()]  # noqa: PTH115
        assert not [name for name in held if "memfd" in name], "the file of the buffer is mapped, and closed"


@pytest.mark.parametrize(
    "body",
    [b"", b"\x00", b"\x63", b"\x04\x01", b"\x01\xff\xff\xff\xff", b"\x02" + b"\xff" * 40],
)
def test_what_is_no_message_ends_it(kit: Kit, body: bytes) -> None:
    with started(kit) as worker:
        worker.bind("returns", axes=(0,))
        worker._channel._encode = lambda message: body
        with pytest.raises(ChannelClosed):
            worker.ask(Release())
        assert worker.process.wait() == 70


def test_an_argument_outside_of_the_buffer_ends_it(kit: Kit) -> None:
    with started(kit) as worker, pytest.raises(ChannelClosed):
        worker.bind("returns", tensor("x", 1 << 20), axes=(0,))
