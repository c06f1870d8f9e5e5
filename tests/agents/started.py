"""Starts an agent's program as its definition says, in a folder and without a box, and reads what it prints."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from arena.agents.definition import DEFINITIONS, PromptBy, fill_in, load_definition
from arena.agents.parsers import make_parser
from arena.results.session import Event, EventKind, Tokens

TOOLS = Path(__file__).parents[2] / "arena" / "agents" / "inside"
TIMEOUT_S = 40.0
KERNEL = "def add(x, y):\n    return x + y\n"
PROMPT = "Make kernel.py faster. Run ./evaluate to see whether it is right."
_EVALUATE = """\
#!/bin/sh
if grep -q 'y + x' kernel.py; then echo 'passed, speedup 1.50'; else echo 'failed: wrong output'; exit 1; fi
"""


@dataclass(frozen=True)
class Ran:
    """What came of it."""

    code: int
    events: tuple[Event, ...]
    model: str
    error: str
    stderr: str
    kernel: str

    def texts(self, kind: EventKind) -> list[str]:
        """The texts of all events of a kind."""
        return [event.text for event in self.events if event.kind is kind]

    @property
    def tokens(self) -> Tokens:
        """Of all events."""
        return sum((event.tokens for event in self.events), Tokens())


def make_workspace(folder: Path) -> Path:
    """A kernel that can be edited, and an `./evaluate` that wants `y + x` in it."""
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / "kernel.py").write_text(KERNEL)
    script = workspace / "evaluate"
    script.write_text(_EVALUATE)
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return workspace


def start(name: str, workspace: Path, given: Mapping[str, str], model: str, programs: Path) -> Ran:
    """Run a shipped definition to its end. `given`: variables of the caller; `programs`: the folder of its program."""
    definition = load_definition(DEFINITIONS / f"{name}.yaml")
    assert set(given) <= {*definition.passes, *definition.credentials}
    home = workspace.parent / "home"
    places = {"WORKSPACE": str(workspace), "HOME": str(home), "TOOLS": str(TOOLS)}
    unset = dict.fromkeys((*definition.passes, *definition.credentials), "")
    values = {**unset, **given, **places, "PROMPT": PROMPT, "MODEL": model}
    for path, text in {"": "", **definition.files}.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        if path:
            (home / path).write_text(fill_in(text, values))
    home.mkdir(exist_ok=True)
    path = os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", **given}
    environment |= {key: fill_in(text, values) for key, text in definition.environment.items()}
    command = [fill_in(text, values) for text in (*definition.command, *definition.model)]
    if definition.prompt is PromptBy.ARGUMENT and PROMPT not in command:
        command.append(PROMPT)
    stdin = PROMPT if definition.prompt is PromptBy.STDIN else ""
    code, stdout, stderr = _run(command, workspace, environment, stdin)
    parser = make_parser(definition.events)
    events = tuple(event for line in stdout.splitlines() for event in parser.feed(line))
    return Ran(code, events, parser.model, parser.error, stderr, (workspace / "kernel.py").read_text())


def _run(command: list[str], folder: Path, environment: dict[str, str], stdin: str) -> tuple[int, str, str]:
    """To the end, or killed with everything that it started: some programs ignore a request to end."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            stdout, stderr = process.communicate(stdin, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, stdout, stderr
