"""While which of the judge's functions does a GPU have nothing to do?

    python tools/idle_profile.py --platform cuda 'triton2triton/normalization/*' --most 6

Evaluates each task's own kernel with a warm judge in this process, which knows the baseline and has compiled the kernel
in an evaluation before, as `profile_calls.py` does; but nothing is waited for that the judge does not wait for. Of each
function in `profile_calls.WATCHED`, and each message to a worker, it prints the seconds of its own (without those that
it calls), those of them in which the device ran a kernel of the judge, those that a worker says its timed pass took,
and what is left: the device had nothing to do, or ran what a worker begins outside of passes.
PyTorch's profiler, which sees the judge's kernels, makes each of their launches a little slower.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from profile_calls import chosen_tasks, labelled, prepared  # noqa: E402
from split_cost import Silent  # noqa: E402
from wrapping import Function, wrap  # noqa: E402

from arena.judge.process.messages import Evaluate  # noqa: E402
from arena.judge.process.service import JudgeService  # noqa: E402
from arena.judge.workers.watchdog import WatchedWorker  # noqa: E402
from arena.platforms import here  # noqa: E402
from arena.results.effort import Effort  # noqa: E402
from arena.task.options import Options  # noqa: E402

Span = tuple[float, float]
MARKS = 50


class Timeline:
    """Which watched function the judge's main thread was in, as spans that do not overlap."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, float, float]] = []
        self.passes_s: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self._stack: list[str] = []
        self._since = 0.0

    def install(self) -> None:
        """Have every function in `WATCHED`, and every message to a worker, note when it begins and ends."""
        for owner, name, label in labelled():
            self._wrap(owner, name, label)
        for name in ("halt", "stop", "resume", "still", "moved"):
            self._wrap(WatchedWorker, name, lambda *_, name=name, **__: f"Worker.{name}")

    def _wrap(self, owner: Any, name: str, label: Callable[..., str]) -> None:
        def around(original: Function) -> Function:
            def outer(*given: Any, **named: Any) -> Any:
                if threading.current_thread() is not threading.main_thread():
                    return original(*given, **named)
                called = label(*given, **named)
                self._turn(called)
                self.calls[called] += 1
                try:
                    answer = original(*given, **named)
                    if called == "Worker.timed Pass":
                        self.passes_s[called] += answer[1].worker_s
                    return answer
                finally:
                    self._turn(None)

            return outer

        wrap(owner, name, around)

    def _turn(self, entered: str | None) -> None:
        now = time.perf_counter()
        if self._stack:
            self.spans.append((self._stack[-1], self._since, now))
        self._since = now
        if entered is None:
            self._stack.pop()
        else:
            self._stack.append(entered)


def union(spans: Iterable[Span]) -> list[Span]:
    """Spans that overlap or touch as one, ascending."""
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def busy_before(busy: list[Span]) -> Callable[[float], float]:
    """Return a function that says for how many seconds a device has worked by some time."""
    begins, sums = [begin for begin, _ in busy], [0.0]
    for begin, end in busy:
        sums.append(sums[-1] + end - begin)

    def asked(now: float) -> float:
        place = bisect_right(begins, now)
        if not place:
            return 0.0
        begin, end = busy[place - 1]
        return sums[place - 1] + min(now, end) - begin

    return asked


def profiled(
    judge: JudgeService, requests: list[Evaluate], synchronize: Callable[[], None]
) -> tuple[float, list[Span]]:
    """Evaluate all; return how long that took, and when kernels of this process ran, by `time.perf_counter`."""
    import torch

    mark = torch.zeros(1, device="cuda")
    synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        seen_s = []
        for _ in range(MARKS):
            mark.add_(1)
            synchronize()
            seen_s.append(time.perf_counter())
        started = time.perf_counter()
        for request in requests:
            judge.evaluate(request, Silent())  # type: ignore[arg-type]
        seconds = time.perf_counter() - started
    ran = sorted(
        (event.time_range.start / 1e6, event.time_range.end / 1e6)
        for event in profile.events()
        if event.device_type.name == "CUDA"
    )
    # A mark was over a little before it was seen to be.
    shift = min(seen - end for seen, (_, end) in zip(seen_s, ran, strict=False))
    return seconds, union((begin + shift, end + shift) for begin, end in ran)


def report(timeline: Timeline, seconds: float, busy: list[Span], evaluations: int) -> None:
    """Print all of it, the longest idle time first."""
    worked, begins = busy_before(busy), [begin for begin, _ in busy]
    own: dict[str, list[float]] = defaultdict(lambda: [0.0] * 5)
    for name, begin, end in timeline.spans:
        for place, part in enumerate((end - begin, worked(end) - worked(begin), *_gaps(busy, begins, begin, end))):
            own[name][place] += part
    busy_s, passes_s = sum(end - begin for begin, end in busy), sum(timeline.passes_s.values())
    print(f"{evaluations} evaluations, {seconds:.1f} s: kernels of the judge {busy_s:.1f}, timed passes {passes_s:.1f}")
    print("own s, kernels of the judge s, passes s, left s, share left, calls, ms left a call, name,")
    print("    and of what is left or passes: s before its first kernel, between its kernels, after its last")
    left_s = {name: parts[0] - parts[1] - timeline.passes_s[name] for name, parts in own.items()}
    for name in sorted(left_s, key=left_s.__getitem__, reverse=True):
        (own_s, kernels_s, *gaps), left, calls = own[name], left_s[name], timeline.calls[name]
        print(
            f"{own_s:8.2f} {kernels_s:8.2f} {timeline.passes_s[name]:8.2f} {left:8.2f} {left / seconds:7.1%} "
            f"{calls:7} {1e3 * left / max(calls, 1):9.3f}  {name}  {' '.join(f'{gap:.2f}' for gap in gaps)}"
        )


def _gaps(busy: list[Span], begins: list[float], begin: float, end: float) -> tuple[float, float, float]:
    """Idle seconds within a span: before the first kernel there, between kernels, and after the last."""
    near = busy[max(bisect_right(begins, begin) - 1, 0) : bisect_right(begins, end)]
    within = [(max(b, begin), min(e, end)) for b, e in near if e > begin]
    if not within:
        return end - begin, 0.0, 0.0
    first, last = within[0][0], within[-1][1]
    return first - begin, last - first - sum(e - b for b, e in within), end - last


def main() -> None:
    """Evaluate each task twice, and profile the second time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+", help="ids or patterns")
    parser.add_argument("--platform", default="auto", help="auto, cuda or rocm")
    parser.add_argument("--most", type=int, default=8, help="tasks at most, spread over those that match")
    parser.add_argument("--effort", choices=[each.value for each in Effort], default=Effort.FULL.value)
    asked = parser.parse_args()
    tasks = chosen_tasks(asked.tasks, asked.most)
    device, began, timeline = here(asked.platform), time.monotonic(), Timeline()
    options = Options(effort=Effort(asked.effort), heldout=asked.effort == Effort.FULL)
    with closing(JudgeService(device)) as judge, tempfile.TemporaryDirectory() as place:
        requests = [prepared(task, Path(place), options) for task in tasks]
        for task, request in zip(tasks, requests, strict=True):
            said = judge.evaluate(request, Silent())  # type: ignore[arg-type]
            print(f"{time.monotonic() - began:6.1f} s  {task.id}: {said.status}", flush=True)
        judge.tidy()
        timeline.install()
        seconds, busy = profiled(judge, requests, device.synchronize)
        judge.tidy()
        report(timeline, seconds, busy, len(tasks))


if __name__ == "__main__":
    main()
