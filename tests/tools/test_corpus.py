"""`tools/corpus.py` checks what has changed, and nothing else."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from arena.checks.tasks import run
from arena.package import PACKAGE, closure_files
from arena.task.corpus.corpora import open_corpora
from arena.task.corpus.task_folder import TASKS
from tests.tools import load


def test_what_has_no_kept_result_of_its_key_is_due() -> None:
    tool = load("corpus")
    now = {"a": "1", "b": "2", "c": "", "d": "4"}
    assert tool.due(now, {"a": "1", "b": "0", "c": ""}) == ["b", "c", "d"]


@pytest.mark.slow
def test_every_task_has_a_key_of_its_own() -> None:
    tool = load("corpus")
    keys = tool.keys()
    assert TASKS in tool.CORPORA and len(keys) > len(open_corpora((TASKS,)).ids) == 196
    assert all(keys.values())
    assert len(set(keys.values())) == len(keys)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, to change."""
    return shutil.copytree(
        PACKAGE, tmp_path_factory.mktemp("copy") / "arena", ignore=shutil.ignore_patterns("__pycache__")
    )


@pytest.fixture
def key_changes(package: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], bool]]:
    """Return whether another text in a file of the package makes another key."""

    def key() -> str:
        run.code_key.cache_clear()
        return run.code_key()

    monkeypatch.setattr(run, "PACKAGE", package)
    before = key()

    def changes(name: str) -> bool:
        text = (package / name).read_text(encoding="utf-8")
        try:
            (package / name).write_text(f"{text}\n", encoding="utf-8")
            return key() != before
        finally:
            (package / name).write_text(text, encoding="utf-8")

    yield changes
    run.code_key.cache_clear()


DECIDES = (
    *("task/expression.py", "task/definition.py", "results/check.py", "processes/protocol.py", "processes/flags.py"),
    *("processes/wire.py", "processes/scratch.py"),
    *("package.py", "__init__.py", "task/corpus/build.py", "task/corpus/strict_yaml.py", "task/corpus/case_checks.py"),
    *("task/schemas/task.json", "task/schemas/cases.json", "task/schemas/fill.json", "checks/tasks/static.py"),
    *("checks/tasks/checker.py",),
    *(
        "judge/correctness/verify.py",
        "judge/process/service.py",
        "judge/performance/counters.py",
        "task/numerics/fills.py",
        "platforms/cpu/triton/names.py",
    ),
    *("worker/fork_server.py", "worker/command_loop.py", "worker/profiled_run.py", "processes/sandbox/network.py"),
    *("platforms/rocm/platform.py", "platforms/rocm/hip_launch.py", "platforms/cpu/amd_isa/program.py"),
    *("checks/tasks/judge_service.py",),
    *("platforms/toolchains/kernel_library/block.h", "platforms/cpu/hip/include/hip/hip_runtime.h"),
    *("semantics/__init__.py",),
)
DECIDES_NOTHING = (
    *("reports/site.py", "reports/pages.py", "cli/tasks_check.py", "cli/app.py", "runs/serve/views.py"),
    *("checks/doctor/report.py", "agents/base.py", "runs/service/trial.py", "runs/runner.py"),
    *("integrations/yardstick/table.py", "runs/service/templates/TASK.md.j2", "checks/doctor/data/copy.hip"),
    *("checks/tasks/mutation.py", "checks/tasks/omissions.py", "checks/tasks/mutants/hip.py"),
    *("checks/tasks/mutant_items.py",),
    *("checks/tasks/probes.py", "integrations/importers/run.py", "integrations/asking.py", "api/client.py"),
)


@pytest.mark.parametrize("name", DECIDES)
def test_whatever_decides_a_check_is_in_its_key(key_changes: Callable[[str], bool], name: str) -> None:
    assert key_changes(name)


@pytest.mark.parametrize("name", DECIDES_NOTHING)
def test_what_decides_no_check_is_not(key_changes: Callable[[str], bool], name: str) -> None:
    assert not key_changes(name)


def test_every_room_that_a_judge_of_tasks_loads_is_in_the_key() -> None:
    """What a module imports when it runs is found in its text."""
    found = closure_files(run.CHECKS, without=run.MUTANTS)
    code = "import sys, arena.checks.tasks.judge_service, arena.worker.command_loop; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = {name for name in done.stdout.split() if name.startswith("arena.")}
    known = {path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".") for path in found}
    assert {name for name in loaded if not {name[6:], f"{name[6:]}.__init__"} & known} == set()


def test_modules_that_are_left_out_exist() -> None:
    for name in (*run.CHECKS, *run.MUTANTS):
        assert importlib.util.find_spec(name)
