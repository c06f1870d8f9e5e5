"""Tasks of the dtype `fp8`: their kernels are right in the format of gfx942 too, interpreted, and as machine code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.judge.compile.cross_compile import CrossCompilation, Limit
from arena.judge.correctness.machine_code import executed
from arena.judge.correctness.stage import CorrectnessCheck
from arena.judge.selection import emulation_work
from arena.judge.workers.program import Program, WorkerProgram
from arena.judge.workers.worker import ForkServers
from arena.platforms.cpu.platform import CpuPlatform
from arena.platforms.cross import triton as triton_cross
from arena.platforms.rocm.hip_clang import find_clang
from arena.processes.protocol import Language
from arena.results.portability import BuildOutcome, MachineCodeOutcome
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import Case, Task, arguments
from arena.task.numerics.reference import Reference

FOLDERS = [path.parent for path in sorted(TASKS.glob("*/*/*/task.yaml")) if "fp8" in path.read_text(encoding="utf-8")]
OF_FP8 = [folder for folder in FOLDERS if "dtype: fp8" in (folder / "task.yaml").read_text(encoding="utf-8")]
CHOSEN = [folder for folder in FOLDERS if any("fp8" in names for names in load_task(folder).dtypes.values())]
KERNELS = [kernel for folder in (*OF_FP8, *CHOSEN) for kernel in sorted(folder.glob("[ke]*.py"))]
SILU = TASKS / "triton2triton/quantization/silu_mul_quant_fp8"
GROUPS = SILU.with_name("per_token_group_quant_fp8")
TIMEOUT_S = 60.0


@pytest.fixture(scope="module")
def interpreting() -> Iterator[ForkServers]:
    servers = ForkServers("cpu", spins=False, interprets=True)
    yield servers
    servers.close()


def cheapest(task: Task) -> Case:
    """The cheapest case that has a tensor of `fp8`."""
    worked_out = (arguments(task, case) for case in task.cases)
    having = [one for one in worked_out if any(tensor.dtype == task.fp8 for tensor in one.tensors.values() if tensor)]
    return min(having, key=emulation_work).case


def status(servers: ForkServers, task: Task, kernel: Path) -> tuple[Status, str]:
    worker_program = WorkerProgram(servers, None, (), TIMEOUT_S)
    check = CorrectnessCheck(CpuPlatform(), Reference(task.reference_path), 1, TIMEOUT_S)
    try:
        worker_program.adopt(Program(task, Language.TRITON, {"": kernel}))
        finding = check.run(worker_program, arguments(task, cheapest(task)))
    finally:
        worker_program.discard()
    return finding.status, finding.detail


@pytest.mark.slow(but=["silu_mul_quant_fp8"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_kernels_are_right_in_the_format_of_gfx942(interpreting: ForkServers, kernel: Path) -> None:
    task = load_task(kernel.parent).on("gfx942")
    assert status(interpreting, task, kernel) == (Status.PASSED, "")


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_a_kernel_that_knows_one_format_alone_is_wrong_in_the_other(
    interpreting: ForkServers, tmp_path: Path, arch: str
) -> None:
    text = (GROUPS / "kernel.py").read_text(encoding="utf-8")
    file = tmp_path / "kernel.py"
    file.write_text(text.replace("torch.finfo(q.dtype).max", "448.0"), encoding="utf-8")
    assert file.read_text(encoding="utf-8") != text
    found, _ = status(interpreting, load_task(GROUPS).on(arch), file)
    assert found is (Status.PASSED if arch == "gfx950" else Status.WRONG_RESULT)


@pytest.mark.slow
@pytest.mark.skipif(find_clang() is None, reason="needs a clang++ for AMD GPUs")
@pytest.mark.skipif(bool(triton_cross.missing("gfx942")), reason="needs Triton's compiler for AMD GPUs")
@pytest.mark.parametrize("kernel", [SILU, TASKS / "triton2triton/fundamentals/chained_dot_fp8"], ids=lambda p: p.name)
def test_machine_code_converts_and_multiplies_the_format_of_its_target(kernel: Path) -> None:
    task, cross, limit = load_task(kernel), CrossCompilation(), Limit(120.0)
    file = kernel / "kernel.py"
    try:
        builds = cross.build(task, file, task.seen[:1], ("gfx942", "gfx950"), limit, lambda done, total: None)
        assert [build.outcome for build in builds] == [BuildOutcome.BUILT] * 2, builds
        found = [build.machine_code for build in executed(cross.fork_servers, task, file, builds, limit)]
    finally:
        cross.close()
    assert [code.outcome for code in found if code] == [MachineCodeOutcome.RIGHT] * 2, found
