"""Compare baselines and experts with production kernels and with the roofline, suite by suite. Used by `tables.py`.

Read are the cases of one run with the agents `noop` and `expert` on one device, of which timed, seen cases count, and
the table of `arena yardstick`. Where that has no row of a task, times of `tools/time_kernels.py` count, compared with
the baseline of the run. HIP has no engine: PyTorch and its compiler, timed so, take its place. Held-out cases in which
an expert is slower than the baseline are listed at the end.

PyTorch bounds nothing. A case is limited by arithmetic where its operations take longer than its bytes, and by launches
where a launch takes longer than both. Why a task does not keep a bound stands in a YAML file of that device. Under the
name of the bound (`engine`, `expert speedup`, `expert roofline` or `baseline bound`) it has a list of reasons, each
with its tasks. Where memory is the limit, a copy of as many bytes may be the reason.
"""

from __future__ import annotations

import csv
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import yaml

from arena.errors import UsageError
from arena.integrations.yardstick.engines import PACKAGES
from arena.integrations.yardstick.table import MEAN, Row, read_table
from arena.platforms.peaks import find_peaks
from arena.results.environment import DeviceFacts
from arena.task.corpus.corpora import open_corpora
from arena.task.definition import Task, arguments

REPORTS = Path(__file__).resolve().parents[2] / "reports"
PRODUCTION, REASONS, STREAMS = (
    REPORTS / name for name in ("production-h200.csv", "reasons-h200.yaml", "stream-h200.csv")
)
MOST_OF_ENGINE, MOST_OFF = 1.5, 50.0
MOST_OFF_HIP = {"memory": 10.0, "arithmetic": 25.0}
LEAST_OF_ROOFLINE = {"memory": 0.75, "arithmetic": 0.5}
LEAST_OF_ROOFLINE_HIP = LEAST_OF_ROOFLINE | {"arithmetic": 0.4}
LAUNCH_MS = 0.00087
"""of an empty node of a graph on an H200, as `arena tasks check` measures it"""
PYTORCH = ("pytorch", "torch_compile")
"""labels of `tools/time_kernels.py`"""
BOUNDS = ("engine", "expert speedup", "expert roofline", "baseline bound")
NEAR_A_STREAM = 0.9
"""an expert is limited as a stream is from this share of its bandwidth on"""
NAMES = ("engine / baseline", "expert / baseline", "expert / roofline", "baseline / bound")


@dataclass
class Measured:
    """What the timed cases of one task say; a figure is None where nothing was measured."""

    task: str
    bound: str
    """`memory`, `arithmetic` or `launch`: what limits the largest case"""
    engine: list[float] = field(default_factory=list)
    expert: list[float] = field(default_factory=list)
    """speedups over the baseline, a case each"""
    of_roofline: float | None = None
    """of the expert, on the largest case"""
    off: float | None = None
    """latency of the baseline over the larger of roofline and launch, on the largest case"""
    reasons: dict[str, str] = field(default_factory=dict)
    """why a bound is not kept, by its name"""

    @property
    def figures(self) -> tuple[float | None, ...]:
        """One for each of `NAMES`; speedups as geometric means."""
        means = [statistics.geometric_mean(values) if values else None for values in (self.engine, self.expert)]
        return (*means, self.of_roofline, self.off)

    def outside(self) -> list[tuple[str, str]]:
        """Say which bounds it does not keep: their names, and by how much."""
        hip = not self.task.startswith("triton2triton")
        slowest, engine = min(self.expert, default=0.0), max(self.engine, default=0.0)
        checks: list[tuple[bool, str, str]] = [
            (engine > MOST_OF_ENGINE and not hip, "engine", f"engine {engine:.2f} × baseline"),
            (
                slowest < 1,
                "expert speedup",
                f"expert {slowest:.2f} × baseline" if self.expert else "no expert was timed",
            ),
        ]
        if self.of_roofline is not None:
            least = (LEAST_OF_ROOFLINE_HIP if hip else LEAST_OF_ROOFLINE).get(self.bound, 0.0)
            reached = f"expert at {self.of_roofline:.2f} of the roofline"
            checks.append((self.of_roofline < least, "expert roofline", reached))
        if self.off is not None:
            most = MOST_OFF_HIP.get(self.bound, MOST_OFF) if hip else MOST_OFF
            checks.append((self.off > most, "baseline bound", f"baseline {self.off:.1f} × its bound"))
        return [(name, problem) for is_outside, name, problem in checks if is_outside]


def bound_of(task: Task, case_id: str, facts: DeviceFacts) -> tuple[str, float]:
    """Return what limits a case on a device, and the milliseconds that it takes at least."""
    worked_out = arguments(task, next(case for case in task.cases if case.id == case_id))
    bytes_ms, least_ms = (
        facts.roofline_ms(flops, worked_out.num_bytes, worked_out.number_format) or 0.0
        for flops in (0.0, worked_out.flops)
    )
    if least_ms < LAUNCH_MS:
        return "launch", LAUNCH_MS
    return "arithmetic" if least_ms > bytes_ms else "memory", least_ms


def pytorch_rows(lines: Iterable[str]) -> list[Row]:
    """Return the speedup of PyTorch, compiled where that is faster, over each HIP kernel: rows as of an engine.

    What rounds more than the task allows counts, too: only speed is asked of it.
    """
    found: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for line in lines:
        record = json.loads(line)
        if record.get("ms") and not record["task"].startswith("triton"):
            found[record["task"], record["case"]][record["label"]] = record["ms"]
    rows: list[Row] = []
    for (task, case), ms in found.items():
        others = [ms[label] for label in PYTORCH if label in ms]
        if others and "kernel" in ms:
            speedup = str(ms["kernel"] / min(others))
            rows.append({"task": task, "case": case, "status": "passed", "speedup": speedup})
    return rows


def read_reasons(text: str) -> dict[str, dict[str, str]]:
    """Return why tasks do not keep bounds: by task, then by the name of the bound.

    Raises:
        UsageError: for an unknown bound, or two reasons for the same.
    """
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for bound, entries in (yaml.safe_load(text) or {}).items():
        if bound not in BOUNDS:
            raise UsageError(f"reasons: unknown bound {bound!r}; expected one of {', '.join(BOUNDS)}")
        for entry in entries:
            for task in entry["tasks"]:
                if bound in found[task]:
                    raise UsageError(f"reasons: two for {bound!r} of {task}; leave one out")
                found[task][bound] = entry["reason"]
    return dict(found)


class Streams:
    """How long copies of given sizes take, as reports/stream-h200.csv has them."""

    def __init__(self, rows: Iterable[Mapping[str, str]]) -> None:
        """`rows`: of its table."""
        self._copies = sorted((int(row["bytes"]), float(row["gb_s"])) for row in rows if row["kind"] == "copy")

    def gb_s(self, size: float) -> float:
        """Return the bandwidth of a copy that moves so many bytes, of which one half is read; 0 where none is known."""
        if not self._copies:
            return 0.0
        sizes, rates = zip(*self._copies, strict=True)
        return float(np.interp(math.log(size), [math.log(one) for one in sizes], rates))


def engine_times(lines: Iterable[str]) -> dict[tuple[str, str], float]:
    """Return the milliseconds of the fastest engine's kernel that the reference calls right, by task and shape.

    Not by the case's number: the case may have another shape by now.
    """
    found: dict[tuple[str, str], float] = {}
    for line in lines:
        record = json.loads(line)
        if record["label"] in PACKAGES and record["status"] == "passed" and record.get("ms"):
            key = record["task"], record["shape"]
            found[key] = min(record["ms"], found.get(key, math.inf))
    return found


def measured(
    cases: Iterable[Row],
    engines: Sequence[Row],
    load: Callable[[str], Task],
    facts: DeviceFacts,
    reasons: Mapping[str, Mapping[str, str]],
    streams: Streams,
    direct: Mapping[tuple[str, str], float],
) -> list[Measured]:
    """Gather the rows of a run and of the yardsticks, task by task.

    `direct`: see `engine_times`; they count for tasks that no engine's kernel was judged for.
    """
    rows: dict[str, dict[tuple[str, str], Row]] = defaultdict(dict)
    for row in cases:
        if row["split"] == "seen" and row["speedup"]:
            rows[row["task"]][row["agent"], row["case"]] = row
    found = []
    for name, of_task in sorted(rows.items()):
        task = load(name)
        timed = {case.id for case in task.seen if case.timed}
        own = {key: row for key, row in of_task.items() if key[1] in timed}
        if own:
            one = _gathered(task, own, engines, facts)
            if not one.engine:
                shapes = {case.id: case.label for case in task.seen}
                ms = {shapes[case]: float(row["baseline_ms"]) for (_, case), row in own.items()}
                one.engine = [ms[shape] / direct[name, shape] for shape in sorted(ms) if (name, shape) in direct]
            one.reasons |= _stream_reason(one, task, own, streams, facts) | dict(reasons.get(name, {}))
            found.append(one)
    return found


def _stream_reason(
    one: Measured, task: Task, rows: Mapping[tuple[str, str], Row], streams: Streams, facts: DeviceFacts
) -> dict[str, str]:
    """Say that an expert is about as fast as a copy of as many bytes, where it is."""
    if one.bound != "memory" or one.of_roofline is None:
        return {}
    size = arguments(task, next(case for case in task.cases if case.id == _largest(rows))).num_bytes
    of_stream = streams.gb_s(size) / (facts.peak_bandwidth_gbs or math.inf)
    if not of_stream or one.of_roofline < NEAR_A_STREAM * of_stream:
        return {}
    return {"expert roofline": f"a copy that moves as many bytes ({size / 1e6:.0f} MB) reaches {of_stream:.2f}"}


def _largest(rows: Mapping[tuple[str, str], Row]) -> str:
    return max(rows.values(), key=lambda row: float(row["baseline_ms"]))["case"]


def _gathered(task: Task, rows: Mapping[tuple[str, str], Row], engines: Sequence[Row], facts: DeviceFacts) -> Measured:
    largest = _largest(rows)
    limit, least_ms = bound_of(task, largest, facts)
    # Where a launch is all there is, no expert has anything to gain.
    launch = {"expert speedup": task.latency_bound} if task.latency_bound else {}
    one = Measured(task.id, limit, reasons=launch)
    one.expert = [float(row["speedup"]) for (agent, _), row in rows.items() if agent == "expert"]
    mine = [row for row in engines if row["task"] == task.id and row["case"] != MEAN and row["status"] == "passed"]
    one.engine = [float(row["speedup"]) for row in mine if row["speedup"]]
    expert, noop = rows.get(("expert", largest)), rows.get(("noop", largest))
    if expert and expert["roofline_fraction"]:
        one.of_roofline = float(expert["roofline_fraction"])
    if noop and not task.task_type.from_pytorch:
        one.off = float(noop["candidate_ms"]) / least_ms
    return one


def needless(found: Sequence[Measured], reasons: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str]]:
    """Return the reasons for bounds that are kept: task and bound."""
    outside = {one.task: dict(one.outside()) for one in found}
    given = [(task, bound) for task, of_task in reasons.items() for bound in of_task]
    return [(task, bound) for task, bound in given if task in outside and bound not in outside[task]]


def page(found: Sequence[Measured], device: str) -> str:
    """Return the tables as Markdown."""
    suites: dict[str, list[Measured]] = defaultdict(list)
    for one in found:
        task_type, suite, _ = one.task.split("/")
        suites[f"{task_type}/{suite}"].append(one)
    beyond = [(one, name, problem) for one in found for name, problem in one.outside()]
    unexplained = sum(name not in one.reasons for one, name, _ in beyond)
    lines = [
        "# Baselines, experts and production kernels by suite",
        "",
        f"From kept cases on {device}. Each cell: median over tasks, and the worst.",
        f"{len({one.task for one, *_ in beyond})} of {len(found)} tasks are outside of a bound; they are listed below.",
        f"{unexplained} of {len(beyond)} bounds that are not kept have no reason.",
        "",
        f"| suite | tasks | {' | '.join(NAMES)} |",
        "| --- | --- | --- | --- | --- | --- |",
        *(f"| {name} | {len(tasks)} | {' | '.join(_cells(tasks))} |" for name, tasks in sorted(suites.items())),
        "",
        "| task | limited by | outside of its bounds | reason |",
        "| --- | --- | --- | --- |",
        *(f"| {one.task} | {one.bound} | {problem} | {one.reasons.get(name, '–')} |" for one, name, problem in beyond),
    ]
    return "\n".join(lines)


def heldout_page(cases: Iterable[Row]) -> str:
    """Return which held-out cases an expert surely loses, the worst first, as Markdown: an interval ends below 1."""
    timed = [r for r in cases if (r["agent"], r["split"]) == ("expert", "heldout") and r["speedup"]]
    slower = sorted((r for r in timed if float(r["speedup_high"]) < 1), key=lambda r: float(r["speedup"]))
    lines = [
        "",
        f"In {len(slower)} of {len(timed)} timed held-out cases the expert is slower than the baseline.",
        "",
        "| task | case | expert / baseline |",
        "| --- | --- | --- |",
        *(f"| {r['task']} | {r['shape']} | {float(r['speedup']):.2f} |" for r in slower),
    ]
    return "\n".join(lines)


def _cells(tasks: Sequence[Measured]) -> list[str]:
    """Median and worst of each figure: the greatest of an engine's speedup and of a distance, the least of experts'."""
    cells = []
    for place, worst in enumerate((max, min, min, max)):
        values = [value for one in tasks if (value := one.figures[place]) is not None]
        cells.append(f"{statistics.median(values):.2f}, {worst(values):.2f} ({len(values)})" if values else "–")
    return cells


def facts_of(device: str, arch: str) -> DeviceFacts:
    """Return a device by its name, with its peaks. Raises `UsageError` where none are known."""
    peaks = find_peaks(device, arch)
    if peaks is None:
        raise UsageError(f"no peaks are known of {device} ({arch}); see arena/platforms/peaks.py")
    return DeviceFacts("", "", arch, device, 0, 0, 0, peak_bandwidth_gbs=peaks.bandwidth_gbs, peak_tflops=peaks.tflops)


def gathered(
    rows: Sequence[Row],
    engines: Sequence[Row],
    times: Sequence[str],
    reasons: Mapping[str, Mapping[str, str]],
    streams: Path,
    facts: DeviceFacts,
) -> list[Measured]:
    """Gather cases of runs, rows of `arena yardstick`, lines of `tools/time_kernels.py` and a file of streams."""
    copies = Streams(csv.DictReader(streams.read_text(encoding="utf-8").splitlines()))
    both = [*engines, *pytorch_rows(times)]
    return measured(rows, both, open_corpora(()).load, facts, reasons, copies, engine_times(times))


def kept_page(cases: Sequence[str], times: Sequence[str]) -> str:
    """Return the page of the kept measurements on H200s, from lines of `cases.csv` and of times.

    Raises:
        UsageError: where a reason is given for a bound that is kept.
    """
    rows = list(csv.DictReader(cases))
    reasons = read_reasons(REASONS.read_text(encoding="utf-8"))
    facts = facts_of("NVIDIA H200", "sm_90")
    found = gathered(rows, read_table(PRODUCTION), times, reasons, STREAMS, facts)
    if unneeded := needless(found, reasons):
        raise UsageError(f"{REASONS.name}: delete the reasons for bounds that are kept: {unneeded}")
    return f"{page(found, facts.name)}\n{heldout_page(rows)}\n"
