"""Do two independent evaluations of a kernel agree? Ten experts, by `arena.evaluate` and by a client of the server.

    python tools/agreement.py > reports/tables/agreement.md              on the CPU platform, a few minutes
    python tools/agreement.py --platform cuda rms_norm softmax           these tasks, on the first GPU

The two evaluations have judges of their own, one after the other, on the same seen cases. Two speedups agree where
their 95 % intervals overlap. Run it while the machine does nothing else: the intervals do not know of other load. The
page says how many processes wanted a core before each evaluation, this tool's own included.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from real_server import real_server

import arena
from arena import Client
from arena.reports.reproduction import decide
from arena.reports.rows import combine
from arena.results.environment import Environment, ratio_heading
from arena.results.record import Estimate, Split
from arena.results.verification import Reproduction
from arena.runs.service.content import Content
from arena.task.definition import Task
from arena.task.options import Options

TASKS = (
    "hip2hip/modules/gelu",
    "hip2hip/modules/silu",
    "hip2hip/modules/softmax",
    "hip2hip/modules/layer_normalization",
    "triton2triton/fundamentals/add",
    "triton2triton/normalization/log_softmax",
    "triton2triton/normalization/rms_norm",
    "triton2triton/quantization/awq_dequantize",
    "triton2triton/quantization/per_token_group_quant_int8",
    "triton2triton/sampling/topk_log_softmax",
)


@dataclass(frozen=True)
class Measured:
    """One evaluation: the speedup of each timed seen case with its interval, and which of them are noisy."""

    status: str
    load: float
    """of the machine in the minute before"""
    speedups: Mapping[str, Estimate]
    noisy: frozenset[str]


@dataclass(frozen=True)
class Compared:
    """Both evaluations of one kernel."""

    task: str
    api: Measured
    client: Measured

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases that both have timed."""
        return tuple(case for case in self.api.speedups if case in self.client.speedups)

    @property
    def means(self) -> tuple[Estimate, Estimate]:
        """Geometric means over these cases, as reports combine them. Raises `ValueError` where there is no case."""
        api, client = (combine(side.speedups[case] for case in self.cases) for side in (self.api, self.client))
        if api is None or client is None:
            raise ValueError(f"{self.task}: no case was timed twice ({self.api.status}, {self.client.status})")
        return api, client

    @property
    def apart(self) -> tuple[str, ...]:
        """The cases whose intervals do not overlap."""
        return tuple(one for one in self.cases if not overlap(self.api.speedups[one], self.client.speedups[one]))


def overlap(one: Estimate, two: Estimate) -> bool:
    """Return whether two intervals share a value; nothing is added for the error of the clock."""
    return decide(one, two, error=0.0, noisy=False)[0] is Reproduction.REPRODUCED


def by_api(task: Task, kernel: Path, platform: str) -> tuple[Measured, Environment]:
    """Evaluate with a judge of its own."""
    load = os.getloadavg()[0]
    evaluation = arena.evaluate(task, kernel, platform=platform, heldout=False).evaluation
    timed = {case.case: case for case in evaluation.split(Split.SEEN) if case.speedup is not None}
    speedups = {name: case.speedup for name, case in timed.items() if case.speedup is not None}
    noisy = frozenset(name for name, case in timed.items() if case.timing is not None and case.timing.noisy)
    return Measured(evaluation.status.value, load, speedups, noisy), evaluation.environment


def by_client(client: Client, task: Task, kernel: Path) -> Measured:
    """Evaluate in an episode of a server, and read the answer alone."""
    load = os.getloadavg()[0]
    step = client.evaluate(client.begin(task.id).episode, kernel.read_text(encoding="utf-8"))
    found = msgspec.json.decode(step.result, type=Content)
    speedups = {
        case.case: Estimate(case.speedup, case.speedup_low, case.speedup_high)
        for case in found.cases
        if case.speedup is not None and case.speedup_low is not None and case.speedup_high is not None
    }
    noisy = frozenset(case.case for case in found.cases if case.noisy)
    return Measured(found.status.value, load, speedups, noisy)


def page(found: Sequence[Compared], environment: Environment, commit: str) -> str:
    """Return the comparison as Markdown."""
    agree = sum(overlap(*one.means) for one in found)
    cases, apart = sum(len(one.cases) for one in found), sum(len(one.apart) for one in found)
    noisy = sum(len((one.api.noisy | one.client.noisy) & set(one.cases)) for one in found)
    loads = sorted(side.load for one in found for side in (one.api, one.client))
    lines = [
        "# Agreement of two evaluations",
        "",
        f"Made by `tools/agreement.py` on {datetime.now(UTC):%Y-%m-%d} at `{commit}`, platform "
        f"{environment.device.platform} ({environment.device.name}). The kernels are experts.",
        "`arena.evaluate` and a client of `arena serve` each had them evaluated once, by judges of their own.",
        "The evaluations are not kept, so this page cannot be made anew from a record.",
        f"Load average of the machine with {os.cpu_count()} cores: {loads[0]:.1f} to {loads[-1]:.1f}.",
        "",
        f"The intervals of the geometric means overlap for **{agree} of {len(found)} kernels**.",
        f"Those of single cases overlap for {cases - apart} of {cases}, of which {noisy} were noisy in one evaluation.",
        "",
        f"| task | {ratio_heading(environment.device.emulated)} by `arena.evaluate` | by a client | overlap "
        "| client over API | cases apart |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for one in found:
        api, client = one.means
        told = ["yes" if overlap(api, client) else "**no**", f"{client.value / api.value:.3f}"]
        names = ", ".join(one.apart) or "–"
        lines.append(f"| {one.task} | {shown(api)} | {shown(client)} | {' | '.join(told)} | {names} |")
    return "\n".join(lines)


def shown(one: Estimate) -> str:
    """Return a speedup with its interval."""
    return f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"


def compare(tasks: Sequence[Task], platform: str) -> tuple[list[Compared], Environment]:
    """Evaluate the expert of each task twice."""
    api, found = {}, []
    for task in tasks:
        assert task.expert is not None
        api[task.id], environment = by_api(task, task.expert, platform)
        print(f"{task.id}: {api[task.id].status}", file=sys.stderr, flush=True)
    with (
        tempfile.TemporaryDirectory() as place,
        real_server(Path(place) / "run", [task.id for task in tasks], Options(), platform) as client,
    ):
        for task in tasks:
            assert task.expert is not None
            found.append(Compared(task.id, api[task.id], by_client(client, task, task.expert)))
            print(f"{task.id}: {found[-1].client.status}, apart: {found[-1].apart}", file=sys.stderr, flush=True)
    return found, environment


def main() -> None:
    """Print the comparison as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=TASKS, help="tasks that have an expert; default: ten cheap ones")
    parser.add_argument("--platform", default="cpu", help="auto, cpu, cuda or rocm")
    given = parser.parse_args()
    tasks = [arena.load_task(name) for name in given.tasks]
    if lacking := [task.id for task in tasks if task.expert is None]:
        parser.error(f"no expert: {', '.join(lacking)}")
    git = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    print(page(*compare(tasks, given.platform), git.stdout.strip() or "no commit"))


if __name__ == "__main__":
    main()
