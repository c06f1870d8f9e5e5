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
from tests.tools import load


def test_what_has_no_kept_result_of_its_key_is_due() -> None:
    tool = load("corpus")
    now = {"a": "1", "b": "2", "c": "", "d": "4"}
    assert tool.due(now, {"a": "1", "b": "0", "c": ""}) == ["b", "c", "d"]


@pytest.mark.slow
def test_every_task_has_a_key_of_its_own() -> None:
    keys = load("corpus").keys()
    assert len(keys) == 196 and all(keys.values())
    assert len(set(keys.values())) == 196


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
    *("model/expression.py", "model/task.py", "model/check.py", "protocol.py", "flags.py", "wire.py", "scratch.py"),
    *("resources.py", "closure.py", "__init__.py", "corpus/build.py", "corpus/strict_yaml.py", "corpus/case_checks.py"),
    *("schemas/task.json", "schemas/cases.json", "schemas/fill.json", "task_check/static.py", "task_check/checker.py"),
    *("judge/verify.py", "judge/service.py", "judge/counters.py", "numerics/fills.py", "emulation/triton/names.py"),
    *("worker/fork_server.py", "worker/command_loop.py", "worker/profiled_run.py", "sandbox/network.py"),
    *("platforms/rocm.py", "platforms/hip_launch.py", "emulation/amd_isa/program.py", "task_check/judge_service.py"),
    *("toolchains/kernel_library/block.h", "emulation/hip/include/hip/hip_runtime.h", "semantics/__init__.py"),
)
DECIDES_NOTHING = (
    *("reporting/site.py", "reporting/pages.py", "cli/tasks_check.py", "cli/app.py", "serve/views.py"),
    *("doctor/report.py", "agents/base.py", "service/trial.py", "runs/runner.py", "yardstick/table.py"),
    *("task_check/mutation.py", "task_check/omissions.py", "task_check/mutants/hip.py", "task_check/mutant_items.py"),
    *("task_check/probes.py", "importers/run.py", "bridges/asking.py", "api/client.py"),
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
