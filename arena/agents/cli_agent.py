"""Any coding agent with a command line: started in a box, followed line by line, held to its limits."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from queue import Empty, Queue
from typing import IO, NamedTuple

from arena.agents import tripwire
from arena.agents.availability import Availability, find_availability, places_of
from arena.agents.base import Agent, EvaluationService, Submission, Workspace, digest_of
from arena.agents.box import PYTHONS, Box, Boxed, BoxPlan, open_box, read_candidate
from arena.agents.budget import Budget, Reached, Stopwatch
from arena.agents.definition import Definition, PromptBy, endpoint, fill_in
from arena.agents.parsers import make_parser
from arena.agents.recorder import RecordedService, Recorder
from arena.agents.redaction import Redactor
from arena.agents.workspace_server import WorkspaceServer
from arena.errors import InfrastructureError
from arena.processes.scratch import clear, scratch
from arena.results.session import KERNEL_LIMIT_BYTES, Ending, Limits, Session
from arena.results.transcripts import TranscriptWriter
from arena.task.corpus.task_folder import hidden_from_candidates

LINE_LIMIT_BYTES = 8 << 20
_AHEAD = 64
_PIECE_BYTES = 1 << 16
_READ_S = 0.05


class Line(NamedTuple):
    """One line, without its end, of `stdout` or `stderr`."""

    stream: str
    text: str


class Lines:
    """Reads both pipes in threads of its own, a few lines ahead: a program that prints faster than it is read waits.

    A line longer than `LINE_LIMIT_BYTES` is cut, and the rest of it dropped.
    """

    def __init__(self, stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self._queue: Queue[Line] = Queue(_AHEAD)
        streams = {"stdout": stdout, "stderr": stderr}
        self._readers = [
            threading.Thread(target=self._read, args=(name, pipe), daemon=True) for name, pipe in streams.items()
        ]
        for reader in self._readers:
            reader.start()

    def take(self, timeout_s: float) -> Iterator[Line]:
        """Lines that are there, not more than are read ahead at most; waits so long for the first."""
        try:
            yield self._queue.get(timeout=timeout_s)
            for _ in range(_AHEAD):
                yield self._queue.get_nowait()
        except Empty:
            return

    def finish(self, timeout_s: float) -> Iterator[Line]:
        """The rest, once the program has ended: whoever still holds its pipes is not waited for longer than this."""
        deadline = time.monotonic() + timeout_s
        while any(reader.is_alive() for reader in self._readers) and time.monotonic() < deadline:
            yield from self.take(_READ_S)
        while not self._queue.empty() and time.monotonic() < deadline:
            yield from self.take(_READ_S)

    def _read(self, name: str, pipe: IO[bytes]) -> None:
        """Ends with the pipe, also where that is closed under it."""
        try:
            while line := pipe.readline(LINE_LIMIT_BYTES):
                if len(line) == LINE_LIMIT_BYTES and not line.endswith(b"\n"):
                    _skip_line(pipe)
                self._queue.put(Line(name, line.rstrip(b"\r\n").decode("utf-8", errors="replace")))
        except (OSError, ValueError):
            return


def _skip_line(pipe: IO[bytes]) -> None:
    """Read to the end of the line."""
    piece = pipe.readline(_PIECE_BYTES)
    while piece and not piece.endswith(b"\n"):
        piece = pipe.readline(_PIECE_BYTES)


INSIDE = Path(__file__).parent / "inside"
FILE_LIMIT_BYTES = 1 << 30
_POLL_S = 0.1
_DISK_POLL_S = 1.0
_PIPES_S = 5.0
_ALWAYS = {"LANG": "C.UTF-8", "TRITON_DEFAULT_FP_FUSION": "1"}


class CliAgent(Agent):
    """An agent whose definition is data. `environ`: where its credentials and settings are taken from."""

    def __init__(
        self, name: str, definition: Definition, model: str = "", environ: Mapping[str, str] = os.environ
    ) -> None:
        self.name = name
        self._definition, self._model, self._environ = definition, model, environ

    @property
    def limits(self) -> Limits:
        """What one trial may use up, as the definition and the run configuration say."""
        return self._definition.limits

    def program(self) -> str:
        """Its definition and model, the file of its program, and the files that its command names."""
        command = self._definition.command
        found = None if command[0] in PYTHONS else shutil.which(command[0], path=self._environ.get("PATH"))
        described = replace(self._definition, limits=Limits(), path=Path(), show=(), beside=())
        return digest_of(self._model, repr(described), *map(Path, filter(None, (found, *command[1:]))))

    def lacks(self) -> str:
        """Its program, or a credential."""
        return find_availability(self._definition, self._environ).lacks(self._definition)

    def work(self, workspace: Workspace, service: EvaluationService) -> Submission:
        """Start the program on TASK.md, follow it until it ends or a limit does, and take what it left.

        Raises `InfrastructureError` where the program cannot start here.
        """
        found = find_availability(self._definition, self._environ)
        if not found.can_start:
            raise InfrastructureError(f"agent {self.name}: {found.lacks(self._definition)}")
        secrets = self._values(self._definition.credentials)
        with ExitStack() as stack:
            place = Path(stack.enter_context(scratch("agent")))
            stack.callback(_clear, (place, workspace.folder))
            writer = stack.enter_context(TranscriptWriter(workspace.transcript, workspace.candidate.name))
            budget = Budget(self.limits, self._definition.price)
            recorder = Recorder(writer, Redactor(secrets), make_parser(self._definition.events), budget)
            session = self._session(place, workspace, service, recorder, found)
            left = read_candidate(workspace.folder, workspace.candidate.name, KERNEL_LIMIT_BYTES)
            if not session.evaluations and left is not None and left == _baseline_kernel(workspace):
                return self._untouched(session, recorder.error_lines)
            kernel, why = service.choose(recorder.clean_kernel(left))
            return Submission(_put(kernel, workspace), why, session)

    def _untouched(self, session: Session, printed: str) -> Submission:
        """Nothing was done: that is an agent's own affair, unless its program failed before it said a word."""
        if session.ending is Ending.FAILED and not session.tokens.total:
            more = f"\n{printed}" if "\n" in printed else ""
            raise InfrastructureError(f"agent {self.name} did not get going: {session.detail}{more}")
        return Submission(None, "the baseline kernel was left as it was, and nothing was evaluated", session)

    def _session(
        self, place: Path, workspace: Workspace, service: EvaluationService, recorder: Recorder, found: Availability
    ) -> Session:
        """Everything between opening the box and closing it."""
        plan = self._plan(place, workspace, found)
        with ExitStack() as stack:
            stack.enter_context(WorkspaceServer(RecordedService(service, recorder), plan.tools / "service.sock"))
            box = stack.enter_context(open_box(plan))
            boxed = self._start(box, workspace, found, plan.home)
            watch = Stopwatch(boxed)
            recorder.begin(watch)
            stack.enter_context(service.attend(watch))
            ending, detail = _follow(boxed, watch, recorder)
            recorder.close()
            for refused, count in box.refused.items():
                recorder.note(f"reached for {refused}, which it may not, {count} times", failed=True)
            active_s, paused_s = watch.active_s(), watch.paused_s()
        return Session(
            agent=self._definition.name,
            version=recorder.clean(found.version),
            ending=ending,
            detail=detail,
            active_s=active_s,
            paused_s=paused_s,
            isolation=box.isolation,
            model=recorder.model or self._model,
            evaluations=tuple(recorder.evaluations),
            refused=recorder.refused,
            tokens=recorder.budget.tokens,
            cost_usd=recorder.budget.cost_usd,
            events=len(recorder.events),
            flags=tripwire.find(recorder.events, workspace.task, own=(box.workspace, box.home, box.tools)),
        )

    def _plan(self, place: Path, workspace: Workspace, found: Availability) -> BoxPlan:
        """What the agent sees: its workspace, a home, the tools, its own program; and what it reaches."""
        home, tools = place / "home", place / "tools"
        home.mkdir()
        shutil.copytree(INSIDE, tools, ignore=shutil.ignore_patterns("__*"))
        taken = self._values((*self._definition.passes, *self._definition.credentials))
        endpoints = [endpoint(entry, taken) for entry in self._definition.network]
        assert found.binary is not None
        shown = (*places_of(found.binary), *self._definition.show, *self._definition.beside)
        return BoxPlan(
            workspace=workspace.folder,
            home=home,
            tools=tools,
            network=tuple(dict.fromkeys(filter(None, endpoints))),
            device=self._definition.device and not workspace.environment.device.emulated,
            show=shown,
            hide=(
                *(*hidden_from_candidates(workspace.task), workspace.transcript.parents[2]),
                *(folder for folder in _subfolders(self._definition.beside) if folder not in shown),
            ),
            disk_bytes=self.limits.disk_bytes,
            file_bytes=min(self.limits.disk_bytes, FILE_LIMIT_BYTES),
        )

    def _start(self, box: Box, workspace: Workspace, found: Availability, home: Path) -> Boxed:
        """Fill in the definition, put its files into the home, and start the program."""
        definition = self._definition
        prompt = (workspace.folder / "TASK.md").read_text(encoding="utf-8")
        taken = self._values((*definition.passes, *definition.credentials))
        places = {"WORKSPACE": box.workspace, "HOME": box.home, "TOOLS": box.tools}
        unset = dict.fromkeys((*definition.passes, *definition.credentials), "")
        values = {**unset, **taken, **places, "PROMPT": prompt, "MODEL": self._model}
        for name, text in definition.files.items():
            file = home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(fill_in(text, values), encoding="utf-8")
        written = {name: fill_in(text, values) for name, text in definition.environment.items()}
        emulated = workspace.environment.device.emulated
        environment = {**_ALWAYS, **({"TRITON_INTERPRET": "1"} if emulated else {}), **taken, **written}
        stdin = prompt.encode() if definition.prompt is PromptBy.STDIN else b""
        try:
            return box.start(self._command(found, values), stdin, environment)
        except FileNotFoundError as problem:
            raise InfrastructureError(f"agent {self.name} cannot start: {problem}") from None

    def _command(self, found: Availability, values: Mapping[str, str]) -> list[str]:
        """The command line, its program by full path."""
        definition = self._definition
        given = (*definition.command[1:], *(definition.model if self._model else ()))
        program = definition.command[0] if definition.command[0] in PYTHONS else str(found.binary)
        command = [program, *(fill_in(text, values) for text in given)]
        in_place = any("${PROMPT}" in text for text in given)
        appended = definition.prompt is PromptBy.ARGUMENT and not in_place
        return [*command, values["PROMPT"]] if appended else command

    def _values(self, names: tuple[str, ...]) -> dict[str, str]:
        return {name: self._environ[name] for name in names if self._environ.get(name)}


def _follow(boxed: Boxed, watch: Stopwatch, recorder: Recorder) -> Reached:
    """Write down what the program prints until it ends, or a limit ends it."""
    lines = Lines(boxed.stdout, boxed.stderr)
    reached, disk_bytes, next_poll = None, 0, 0.0
    while boxed.poll() is None and reached is None:
        for line in lines.take(_POLL_S):
            recorder.line(*line)
        if time.monotonic() > next_poll:
            disk_bytes, next_poll = boxed.disk_used(), time.monotonic() + _DISK_POLL_S
        reached = recorder.budget.reached(watch.active_s(), disk_bytes)
    code = boxed.poll()
    boxed.kill()
    for line in lines.finish(_PIPES_S):
        recorder.line(*line)
    if reached is not None:
        recorder.note(f"ended by the harness: {reached.detail}", failed=True)
        return reached
    if code == 0 and not recorder.error:
        return Reached(Ending.FINISHED, "")
    reason = recorder.error or f"the program ended with exit code {code}"
    return Reached(Ending.FAILED, f"{reason}: {recorder.last_error}" if recorder.last_error else reason)


def _clear(folders: tuple[Path, ...]) -> None:
    """Delete what an agent left, however deep: the folders themselves are removed by whoever made them."""
    for folder in folders:
        try:
            clear(folder)
        except OSError:
            continue  # what cannot be deleted stays for the sweep of the next run


def _subfolders(folders: tuple[Path, ...]) -> list[Path]:
    """Folders beside an agent's program: runs, reports and held-out cases often lie there."""
    return [path for folder in folders if folder.is_dir() for path in folder.iterdir() if path.is_dir()]


def _baseline_kernel(workspace: Workspace) -> bytes | None:
    path = workspace.task.baseline_kernel
    return None if path is None else path.read_bytes()


def _put(kernel: bytes | None, workspace: Workspace) -> Path | None:
    """The kernel that counts as a file, in a folder that the agent never had."""
    if kernel is None:
        return None
    file = workspace.transcript / workspace.candidate.name
    file.write_bytes(kernel)
    return file
