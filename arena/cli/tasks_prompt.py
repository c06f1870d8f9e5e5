"""`arena tasks prompt`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arena.cli.console import examples, print_json
from arena.cli.corpora import TasksDirs
from arena.cli.devices import Platform
from arena.processes.printable import printable

if TYPE_CHECKING:
    from arena.results.environment import Environment

EXAMPLES = examples(
    "arena tasks prompt rms_norm",
    "arena tasks prompt hip2hip/modules/softmax --platform cpu --turns 6 | wc -w",
    "arena tasks prompt rms_norm --json | jq -r '.files | keys[]'",
)


def prompt(
    task: Annotated[str, typer.Argument(help="Task id, bare name or folder.")],
    platform: Platform = "auto",
    turns: Annotated[int, typer.Option(help="Answers that the model has.", min=1)] = 1,
    tasks_dir: TasksDirs = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, also in parts: text and files.")] = False,
) -> None:
    """Print what a bare model is asked: the task's text, kernel, reference and seen cases. Nothing held out."""
    from arena.agents.chat.prompt import TEXT, files_of, prompt_of
    from arena.processes.scratch import scratch
    from arena.results.session import Limits
    from arena.runs.service.workspace import prepare
    from arena.task.corpus.corpora import open_corpora

    found = open_corpora(tasks_dir or ()).find(task)
    kernel = found.task_type.kernel_file
    with scratch("prompt") as place:
        folder = Path(place)
        prepare(folder, found, environment_here(platform), Limits())
        whole, text, files = (
            prompt_of(folder, kernel, found.entry, turns),
            (folder / TEXT).read_text(encoding="utf-8"),
            files_of(folder),
        )
    if as_json:
        named = {"id": found.id, "hash": found.content_hash, "kernel": kernel, "entry": found.entry}
        print_json({**named, "prompt": whole, "text": text, "files": files})
        return
    sys.stdout.buffer.write(printable(whole).encode())
    sys.stdout.flush()


def environment_here(name: str) -> Environment:
    """Return the device and the versions that a task's text names, without starting a judge."""
    import importlib.util
    import platform as host_platform
    from importlib.metadata import PackageNotFoundError, version

    from arena.platforms import here, platform
    from arena.results.environment import Environment

    no_torch = importlib.util.find_spec("torch") is None  # then there is no GPU that a judge could use
    device = platform("cpu") if name == "cpu" or (name == "auto" and no_torch) else here(name)
    versions = {"python": host_platform.python_version()}
    for name in ("torch", "triton"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return Environment(device.facts(), "", {**versions, **device.versions()})
