"""The buffers in which the sets of a pass lie."""

from __future__ import annotations

import dataclasses

import pytest

from arena.judge.performance.timer import Timer
from arena.platforms.cpu.platform import CpuPlatform
from arena.platforms.cuda.platform import CudaPlatform
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import Arguments, arguments
from tests.platforms.fake_device import GIB, H200, FakeDevice


class Allocating(CudaPlatform):
    """Says what it was asked for, and gives memory of the processor."""

    def __init__(self, memory_bytes: int) -> None:
        super().__init__(FakeDevice(dataclasses.replace(H200, memory_bytes=memory_bytes)))
        self.asked: list[int] = []
        self.torch_device = "cpu"

    def allocate(self, num_bytes: int, *, lasting: bool = False):  # type: ignore[no-untyped-def]
        self.asked.append(num_bytes)
        return CpuPlatform().allocate(4096)


@pytest.mark.parametrize("memory_bytes", [150_109_880_320, 24 * GIB - 12345, 192 * GIB])
def test_arenas_hold_items_of_every_size_and_leave_room(memory_bytes: int) -> None:
    device = Allocating(memory_bytes)
    timer = Timer(device, device.facts())
    first, second = timer.arenas
    assert first is not None and second is not None
    assert len(device.asked) == 2
    for num_bytes in device.asked:
        assert num_bytes % 4096 == 0, "else it cannot be seen as floats"
        assert memory_bytes / 9 < num_bytes <= memory_bytes / 8 or num_bytes == 16 << 30
    first.close()
    second.close()


def sizes(rows: int) -> Arguments:
    task = load_task(TASKS / "triton2triton/normalization/rms_norm")
    case = dataclasses.replace(task.seen[0], values={**task.seen[0].values, "M": rows, "N": 1 << 14})
    return arguments(task, case)


@pytest.mark.parametrize(
    ("rows", "grows"), [(1 << 10, False), (1 << 15, True), (1 << 17, False)], ids=["fits", "is large", "is too large"]
)
def test_both_arenas_hold_the_fewest_sets_of_every_timed_case(rows: int, grows: bool) -> None:
    device = Allocating(150_109_880_320)
    timer = Timer(device, device.facts())
    before = [timer.arenas[0]]
    timer.make_room([sizes(8), sizes(rows)])
    wanted = 5 * sizes(rows).num_bytes
    assert (timer.arenas[0] is not before[0]) is grows
    assert (device.asked[-1] >= wanted) is (grows or rows == 1 << 10)
    assert device.asked[-1] <= 150_109_880_320 / 4
