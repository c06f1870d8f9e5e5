"""How long does a worker take to be reached, by a GPU's events, by messages, and by flags in shared memory?

    python tools/reach_noise.py                 on the first NVIDIA GPU, in half a minute

Two processes replay a graph of 40 or of 5 kernels whenever this one asks, which has copied 4 GB before, as a judge
does: they are stopped meanwhile, and rehearse twice. Each pass is timed in three ways, in random order:

    events      from before a message is written to after the answer is read; the worker records an event on each side
    messages    from before a message is written to when the answer has come, without events
    flags       from one store in shared memory to another, as `arena/processes/flags.py` does it

Of each it prints the median in microseconds and how much passes vary; then how much the ratio of both processes does,
each a long pass without its short one.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import statistics
import time
from collections import defaultdict
from contextlib import suppress

from round_noise import deviation

from arena.platforms.cuda.platform import CudaPlatform
from arena.processes.flags import Flags, new_flags
from arena.processes.protocol import Done, FromWorker, Pass, Prepare, ToWorker
from arena.processes.wire import Channel, ChannelTimeout

WAYS = ("events", "messages", "flags")
KERNELS = {"long": 40, "short": 5}
REPETITIONS, WARM = 130, 10
ELEMENTS = 64 << 20
COPIED = 1 << 30
ALERT_S = 0.02
ANSWERS_S = 60.0


class Worker:
    """In a process of its own: graphs, and a loop that replays them."""

    def __init__(self, channel: Channel[FromWorker, ToWorker], flags: Flags) -> None:
        import torch

        self._channel, self._flags = channel, flags
        self._platform = CudaPlatform()
        self._values = torch.randn(ELEMENTS, device="cuda")
        self._graphs = {name: self._captured(count) for name, count in KERNELS.items()}
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]  # type: ignore[no-untyped-call]

    def _captured(self, count: int) -> object:
        import torch

        graph = torch.cuda.CUDAGraph()
        self._platform.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call]
            graph.capture_begin()
            for _ in range(count):
                self._values.mul_(1.0)
            graph.capture_end()
        graph.replay()
        self._platform.synchronize()
        return graph

    def serve(self) -> None:
        """Answer until killed."""
        self._platform.launch_tiny_kernel()
        self._channel.send(Done())
        alert = False
        while True:
            with suppress(ChannelTimeout):
                message, _ = self._channel.receive(ALERT_S if alert else None, spins=alert)
                alert = isinstance(message, Prepare)
                self._obey(message)
                continue
            alert = False

    def _obey(self, message: ToWorker) -> None:
        if not isinstance(message, Pass):
            self._platform.launch_tiny_kernel()
            self._channel.send(Done())
            return
        way, name = message.name.split()
        seconds = self._run(way, name)
        if way != "flags":
            self._channel.send(Done(seconds))

    def _run(self, way: str, name: str) -> float:
        replay = self._graphs[name].replay  # type: ignore[attr-defined]
        begin, end = self._events

        def replayed() -> float:
            started = time.perf_counter()
            replay()
            self._platform.synchronize()
            return time.perf_counter() - started

        if way == "flags":
            self._flags.run(replayed)
            return 0.0
        if way == "messages":
            return replayed()
        begin.record()
        replay()
        end.record()
        self._platform.synchronize()
        return float(begin.elapsed_time(end)) / 1e3


class Reached:
    """A worker as this process has it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._flags, file = new_flags()
        self._pid = os.fork()
        if self._pid == 0:
            ours.close()
            Worker(Channel(theirs, ToWorker), Flags(file)).serve()
        theirs.close()
        os.close(file)
        self._channel: Channel[ToWorker, FromWorker] = Channel(ours, FromWorker)
        self._channel.receive(ANSWERS_S)
        self.signal(signal.SIGSTOP)

    def signal(self, number: signal.Signals) -> None:
        """Stop it, have it go on, or kill it."""
        os.kill(self._pid, number)

    def seconds(self, way: str, name: str) -> float:
        """One pass, timed in one way."""
        self.signal(signal.SIGCONT)
        for _ in range(2):
            self._channel.send(Prepare())
            self._channel.receive(ANSWERS_S, spins=True)
        began = time.perf_counter()
        self._channel.send(Pass(f"{way} {name}"))
        ran = self._flags.time_pass(ANSWERS_S, self._channel.has_next) if way == "flags" else None
        if way != "flags":
            self._channel.receive(ANSWERS_S, spins=True)
        ended = time.perf_counter()
        self.signal(signal.SIGSTOP)
        if ran is not None:
            return ran[1] - ran[0]
        return (ended if way == "events" else self._channel.arrived_s) - began


def main() -> None:
    """Time passes in each way."""
    both = (Reached(), Reached())  # before this process has a device
    import torch

    source = torch.randn(COPIED, device="cuda")
    copy = torch.empty_like(source)
    found: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    passes = [(way, name, which) for way in WAYS for name in KERNELS for which in range(2)]
    for _ in range(REPETITIONS):
        for way, name, which in random.sample(passes, len(passes)):
            copy.copy_(source)
            torch.cuda.synchronize()
            found[way, name, which].append(both[which].seconds(way, name))
    for one in both:
        one.signal(signal.SIGKILL)
    for (way, name, which), values in sorted(found.items()):
        middle, varies = statistics.median(values[WARM:]) * 1e6, deviation(values[WARM:]) * 1e6
        print(f"{way:9} {name:6} worker {which}: {middle:8.1f} us, varies by {varies:5.1f}")
    for way in WAYS:
        spans = [
            [long - short for long, short in zip(found[way, "long", which], found[way, "short", which], strict=True)]
            for which in range(2)
        ]
        ratios = [one / other for one, other in zip(*spans, strict=True)][WARM:]
        print(f"{way:9} ratio {statistics.median(ratios):.5f}, varies by {deviation(ratios):.2%}")


if __name__ == "__main__":
    main()
