"""Cross-compile in a child process: `python -m arena.checks.doctor.cross_builds FILE`.

Whatever this machine claims to build is built, with nothing taken from a cache: the probe kernel through the HIP
compilers, the baseline kernel of a task through Triton.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from arena.checks.doctor.candidates import RMS_NORM
from arena.checks.doctor.children import problem_of, write_down
from arena.checks.doctor.evidence import CrossSeen, VendorBuilds
from arena.checks.doctor.probe import probe_source
from arena.errors import InfrastructureError
from arena.judge.compile.cross_compile import CrossCompilation, Limit
from arena.platforms.cross.compilers import abilities, hip_cross_toolchain
from arena.platforms.toolchains.base import Built, Target
from arena.platforms.toolchains.targets import TARGETS
from arena.results.portability import BuildOutcome, TargetBuild
from arena.task.corpus.task_folder import load_task

_TIMEOUT_S = 60.0


def families(targets: Sequence[str]) -> tuple[str, ...]:
    """One target of each generation (`gfx9`, `gfx11`, `sm_9`, …): gfx942 of its own, else the last that is listed."""
    found: dict[str, str] = {}
    for target in targets:
        family = target[:-2] if target.startswith("gfx") else target[:-1]
        if found.get(family) != "gfx942":
            found[family] = target
    return tuple(found.values())


class CrossCheck:
    """Builds for one language and vendor after the other, and writes each down at once."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen = CrossSeen()

    def run(self) -> None:
        """Build everything, or note what stopped it."""
        problem = problem_of(self._build)
        write_down(self._file, replace(self._seen, problem=problem))

    def _build(self) -> None:
        for ability in abilities():
            builds: tuple[TargetBuild, ...] = ()
            if ability.able:
                build = build_hip if ability.language == "hip" else build_triton
                builds = build(families(ability.targets))
            vendors = VendorBuilds(ability.language, ability.vendor, ability.missing, builds)
            self._seen = CrossSeen((*self._seen.vendors, vendors))
            write_down(self._file, self._seen)


def build_hip(targets: Sequence[str]) -> tuple[TargetBuild, ...]:
    """The probe kernel for each target, on all cores."""
    with tempfile.TemporaryDirectory(prefix="arena-cross-") as cache:

        def one(target: str) -> TargetBuild:
            try:
                toolchain = hip_cross_toolchain(target, Path(cache))
            except InfrastructureError as problem:
                return TargetBuild(target, BuildOutcome.FAILED, str(problem), asked=1)
            built = toolchain.build(probe_source(), Target(target, TARGETS[target].wave_size), _TIMEOUT_S)
            if isinstance(built, Built):
                return TargetBuild(target, BuildOutcome.BUILT, "", built.seconds, 1, 1, built.kernels)
            return TargetBuild(target, BuildOutcome.FAILED, built.log.strip() or "no reason given", built.seconds, 0, 1)

        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            return tuple(pool.map(one, targets))


def build_triton(targets: Sequence[str]) -> tuple[TargetBuild, ...]:
    """The baseline kernel of RMS norm on its smallest case, for each target; in workers, whose caches are their own."""
    task = load_task(RMS_NORM)
    assert task.baseline_kernel is not None
    cross_compilation = CrossCompilation()
    try:
        limit = Limit(_TIMEOUT_S)
        return cross_compilation.build(
            task, task.baseline_kernel, task.seen[:1], targets, limit, lambda done, total: None
        )
    finally:
        cross_compilation.close()


if __name__ == "__main__":
    CrossCheck(Path(sys.argv[1])).run()
