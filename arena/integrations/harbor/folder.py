"""Write the folder of one task."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arena.agents.inside import evaluate
from arena.errors import UsageError
from arena.integrations.harbor import HarborSettings, Layout
from arena.results.environment import Environment
from arena.runs.service.workspace import COMMAND, TEXT, prepare, prompt_text
from arena.task.definition import Task

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).parent / "templates"
CLIENT = Path(__file__).parent / "inside" / "judge.py"
ORGANIZATION = "unseen-arena"
_CONFIG = "task.toml"
_WORKSPACE = "workspace"
_JUDGE = ".judge"
_EVALUATION_S = 30.0
"""of the agent's timeout, for each evaluation: Harbor's clock runs on while the judge works"""


def folder_name(task: Task) -> str:
    """Return the name of a task's folder, which is its name in Harbor, too."""
    return task.id.replace("/", "__")


def export(task: Task, out: Path, environment: Environment, settings: HarborSettings, overwrite: bool = False) -> Path:
    """Write the folder of one task below `out`, and return it.

    Args:
        task: with all of its files.
        out: created where it does not exist.
        environment: the device and versions that the instruction names.
        settings: what the folder asks for.
        overwrite: replace a folder that was exported before.

    Raises:
        UsageError: the folder exists.
    """
    folder = out / folder_name(task)
    if folder.exists():
        if not overwrite or not (folder / _CONFIG).is_file():
            raise UsageError(f"{folder} exists; choose another --out, or --overwrite to replace exported tasks")
        shutil.rmtree(folder)
    workspace = folder / "environment" / _WORKSPACE
    workspace.mkdir(parents=True)
    prepare(workspace, task, environment, settings.limits)
    text = prompt_text(workspace)
    (workspace / TEXT).unlink()
    _write_client(workspace / _JUDGE)
    values = _values(task, settings)
    _render(folder / "instruction.md", values | {"text": text})
    _render(folder / _CONFIG, values)
    _render(workspace / COMMAND, values, executable=True)
    _render(folder / "environment" / "Dockerfile", values)
    _write_tests(folder / "tests", values)
    _write_solution(folder / "solution", task, values)
    if settings.layout is Layout.SIDECAR:
        for part, token in (("environment", "ARENA_AGENT_TOKEN"), ("tests", "ARENA_TOKEN")):
            _render(folder / part / "docker-compose.yaml", values | {"token": token})
    return folder


def _values(task: Task, settings: HarborSettings) -> dict[str, Any]:
    limits = settings.limits
    return {
        "task": task.id,
        "name": f"{ORGANIZATION}/{folder_name(task)}",
        "summary": task.summary,
        "task_type": task.task_type.value,
        "suite": task.suite,
        "task_hash": task.content_hash,
        "kernel": task.task_type.kernel_file,
        "sidecar": settings.layout is Layout.SIDECAR,
        "platform": settings.platform,
        "image": settings.image,
        "gpus": settings.gpus,
        "evaluations": limits.evaluations,
        "minutes": limits.wall_clock_s / 60,
        "agent_s": limits.wall_clock_s + _EVALUATION_S * limits.evaluations,
    }


def _write_client(folder: Path) -> None:
    """Write what `./evaluate` runs in the agent's container."""
    folder.mkdir()
    for source in (CLIENT, Path(evaluate.__file__)):
        shutil.copyfile(source, folder / source.name)


def _write_tests(folder: Path, values: dict[str, Any]) -> None:
    folder.mkdir()
    shutil.copyfile(CLIENT, folder / CLIENT.name)
    _render(folder / "test.sh", values, executable=True)
    _render(folder / "Dockerfile", values, template="tests.Dockerfile")


def _write_solution(folder: Path, task: Task, values: dict[str, Any]) -> None:
    """Write the expert kernel, else one that is known to be correct; nothing where the corpus has neither."""
    kernel = task.expert or task.baseline_kernel or task.trusted_kernel
    if kernel is None:
        return
    folder.mkdir()
    shutil.copyfile(kernel, folder / task.task_type.kernel_file)
    _render(folder / "solve.sh", values, executable=True)


def _render(path: Path, values: dict[str, Any], *, template: str = "", executable: bool = False) -> None:
    path.write_text(_engine().get_template(f"{template or path.name}.j2").render(values), encoding="utf-8")
    if executable:
        path.chmod(0o755)


def _engine() -> jinja2.Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    engine = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    engine.filters["quoted"] = partial(json.dumps, ensure_ascii=False)  # a basic string of TOML, too
    return engine
