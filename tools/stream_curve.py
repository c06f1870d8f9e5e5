"""Measure how fast plain streams of each size are on a GPU: what a kernel limited by memory can hope for.

    python tools/stream_curve.py --out reports/stream-h200.csv

`read` adds up a buffer, `write` fills one, `copy` reads one half and writes the other, negated so that it is a kernel.
All are PyTorch's. As in an evaluation, calls are in a device graph on data that is in no cache. Each line of OUT is
one kind and size: the median milliseconds of a call, and the bandwidth. `tools/suite_table.py --streams` reads it.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections.abc import Callable
from pathlib import Path

import torch

SIZES = tuple(int(2 ** (step / 2)) // 512 * 512 for step in range(40, 63))
"""bytes that are moved: 1 MiB to 2 GiB"""
SETS_BYTES, LEAST_SETS, MOST_SETS, PASSES = 1 << 30, 4, 256, 9
COLUMNS = ("kind", "bytes", "ms", "gb_s")
Stream = Callable[[torch.Tensor], object]


def read(buffer: torch.Tensor) -> object:
    """Add up a buffer."""
    return torch.sum(buffer)


def write(buffer: torch.Tensor) -> object:
    """Fill a buffer."""
    return buffer.fill_(1.0)


def copy(buffer: torch.Tensor) -> object:
    """Read the first half of a buffer and write the other."""
    half = buffer.numel() // 2
    return torch.neg(buffer[:half], out=buffer[half : 2 * half])


STREAMS: dict[str, Stream] = {"read": read, "write": write, "copy": copy}


def measured_ms(stream: Stream, size: int) -> float:
    """Return the median milliseconds of a call on so many bytes."""
    count = max(LEAST_SETS, min(MOST_SETS, SETS_BYTES // size))
    buffers = [torch.ones(size // 4, device="cuda") for _ in range(count)]
    for buffer in buffers:
        stream(buffer)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for buffer in buffers:
            stream(buffer)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    found: list[float] = []
    for turn in range(PASSES + 1):
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        if turn:  # the first replay uploads the graph
            found.append(begin.elapsed_time(end) / count)
    return statistics.median(found)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write")
    given = parser.parse_args()
    with given.out.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for kind, stream in STREAMS.items():
            for size in SIZES:
                ms = measured_ms(stream, size)
                torch.cuda.empty_cache()
                rows.writerow((kind, size, f"{ms:.5f}", f"{size / ms / 1e6:.0f}"))
                file.flush()


if __name__ == "__main__":
    main()
