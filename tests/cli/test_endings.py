"""How the command ends: exit code 1 is a command's answer alone, and no ending shows a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from arena.cli import crash, streams
from arena.processes import crash_file
from tests.task.corpus.folders import write_task

ARENA = str(Path(sys.executable).with_name("arena"))
ROOT = Path(__file__).parents[2]
COMMANDS = {
    "help": ["--help"],
    "version": ["--version"],
    "list": ["tasks", "list"],
    "json": ["tasks", "list", "--json"],
    "show": ["tasks", "show", "rms_norm"],
    "prompt": ["tasks", "prompt", "rms_norm", "--platform", "cpu"],
    "agents": ["agents"],
    "doctor": ["doctor", "--help"],
}
WRONG = {
    "usage": (["tasks", "list", "--colour"], 2),
    "task": (["tasks", "show", "rmsnörm"], 2),
    "evaluate": (["evaluate", "rms_norm", "nowhere-×.py"], 2),
    "report": (["report", "configs"], 3),
}
ENCODINGS = {
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "strict": {"PYTHONIOENCODING": "latin-1:strict"},
    "C": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
}
FAULT = """
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import PathFinder


class Faulty(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "arena.task.corpus.corpora":
            raise {fault}


sys.meta_path.insert(0, Faulty())
"""
"""a `sitecustomize.py` by which a command fails where it looks for its tasks"""
FAULTS = {
    "internal": "ValueError('π is not 3\\n\\x1b[2J')",
    "end of file": "EOFError('no more')",
    "recursion": "RecursionError('deep')",
    "memory": "MemoryError()",
    "another pipe": "BrokenPipeError(32, 'Broken pipe')",
    "permission": "PermissionError(13, 'Permission denied', '/somewhere')",
}


def environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    return {**kept, "LC_ALL": "C.UTF-8", **variables}


def typed(line: str, arguments: list[str], **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of a shell, in which `"$@"` is the command."""
    command = ["/bin/bash", "-c", line, "bash", ARENA, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment(**variables), capture_output=True, timeout=110, check=False
    )


def faulty(folder: Path, fault: str) -> dict[str, str]:
    """Return the variables with which the command fails like this."""
    (folder / "sitecustomize.py").write_text(FAULT.format(fault=fault), encoding="utf-8")
    return {"PYTHONPATH": str(folder), "XDG_STATE_HOME": str(folder / "state")}


@pytest.mark.slow(but=["list-", "show-C"])
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("command", COMMANDS)
def test_any_encoding_shows_any_text(command: str, encoding: str) -> None:
    done = typed('"$@"', COMMANDS[command], **ENCODINGS[encoding])
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout
    if encoding != "strict" and command not in ("json", "prompt"):  # which are UTF-8, for machines
        assert done.stdout.isascii()


@pytest.mark.slow(but=["task-", "usage-C"])
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("command", WRONG)
def test_any_encoding_shows_an_error(command: str, encoding: str) -> None:
    arguments, code = WRONG[command]
    done = typed('"$@"', arguments, **ENCODINGS[encoding])
    assert done.returncode == code and done.stderr and b"Traceback" not in done.stderr
    assert b"internal error" not in done.stderr


@pytest.mark.slow(but=["list-", "help-"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", COMMANDS)
def test_closed_streams_are_no_failure(command: str, closed: str) -> None:
    done = typed(f'"$@" {closed}', COMMANDS[command])
    assert (done.returncode, done.stderr) == (0, b"")
    assert bool(done.stdout) is (">&-" not in closed.replace("2>&-", ""))


@pytest.mark.parametrize("command", WRONG)
def test_an_error_keeps_its_code_where_nobody_can_see_it(command: str) -> None:
    arguments, code = WRONG[command]
    assert typed('"$@" <&- >&- 2>&-', arguments).returncode == code


@pytest.mark.parametrize("command", ["help", "version", "list", "json", "show", "agents"])
def test_a_reader_that_leaves_ends_it_quietly(command: str) -> None:
    done = typed('"$@" | exec 0<&-; echo ${PIPESTATUS[0]}', COMMANDS[command])
    assert (done.stdout, done.stderr) == (b"141\n", b"")


def test_a_reader_that_has_read_enough_ends_it_quietly(tmp_path: Path) -> None:
    for number in range(60):
        write_task(tmp_path, f"triton2triton/suite/scale_{number}")
    done = typed('"$@" | head -n 1; echo ${PIPESTATUS[0]}', ["tasks", "list", "--json", "--tasks-dir", str(tmp_path)])
    assert done.stdout.splitlines()[0] == b"[" and done.stdout.splitlines()[1] in (b"0", b"141")
    assert done.stderr == b""


def test_a_verdict_counts_more_than_the_reader_of_an_error() -> None:
    done = typed('"$@" 2>&1 | exec 0<&-; echo ${PIPESTATUS[0]}', WRONG["evaluate"][0])
    assert (done.stdout, done.stderr) == (b"2\n", b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("command", ["help", "version", "list", "json"])
def test_output_that_finds_no_room_is_no_answer(command: str, tmp_path: Path) -> None:
    done = typed('"$@" >/dev/full', COMMANDS[command], XDG_STATE_HOME=str(tmp_path))
    assert done.returncode == 3
    assert done.stderr == b"arena: the output could not be written: No space left on device; " + (
        b"make room and repeat the command\n"
    )


@pytest.mark.slow(but=["internal", "another pipe", "end of file"])
@pytest.mark.parametrize("fault", FAULTS)
def test_an_internal_error_is_a_line_that_names_a_file(fault: str, tmp_path: Path) -> None:
    done = typed('"$@"', COMMANDS["list"], **faulty(tmp_path, FAULTS[fault]))
    (file,) = (tmp_path / "state" / "unseen-arena").iterdir()
    (line,) = done.stderr.decode().splitlines()
    assert done.returncode == 3 and done.stdout == b""
    assert line.startswith("arena: internal error: ") and FAULTS[fault].split("(")[0] in line
    assert line.endswith(f"please report it with the traceback in {file}") and "\x1b" not in line
    assert "Traceback (most recent call last)" in file.read_text(encoding="utf-8")
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
@pytest.mark.parametrize("command", [["evaluate", "rms_norm", "README.md"], ["tasks", "show", "rms_norm"], ["serve"]])
@pytest.mark.parametrize("closed", ["", "2>&-", ">&- 2>&-"])
def test_every_command_ends_so(command: list[str], closed: str, tmp_path: Path) -> None:
    done = typed(f'"$@" {closed}', command, **faulty(tmp_path, FAULTS["internal"]))
    assert done.returncode == 3 and len([*(tmp_path / "state" / "unseen-arena").iterdir()]) == 1


def test_the_traceback_goes_where_there_is_room(tmp_path: Path) -> None:
    variables = faulty(tmp_path, FAULTS["internal"])
    (tmp_path / "state").write_text("no folder", encoding="utf-8")
    (tmp_path / "temporary").mkdir()
    done = typed('"$@"', COMMANDS["list"], **variables, TMPDIR=str(tmp_path / "temporary"))
    (file,) = (tmp_path / "temporary").iterdir()
    assert done.returncode == 3 and done.stderr.decode().endswith(f"{file}\n")


def test_the_traceback_is_printed_where_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crash_file, "_folders", lambda: iter([Path("/proc/nowhere")]))
    try:
        raise ValueError("three")
    except ValueError as problem:
        said = str(crash.internal_error(problem))
    assert said.startswith("internal error: ValueError: three; no file could be written") and "Traceback" in said


def test_a_closed_stream_is_not_taken_by_the_next_file(tmp_path: Path) -> None:
    code = (
        "import os; from arena.cli import streams; streams.prepare(); "
        f"held = open({str(tmp_path / 'file')!r}, 'w'); print('lost'); os.write(1, b'lost'); os._exit(held.fileno())"
    )
    command = ["/bin/bash", "-c", '"$@" <&- >&- 2>&-', "bash", sys.executable, "-c", code]
    assert subprocess.run(command, check=False).returncode > 2
    assert (tmp_path / "file").read_text() == ""


def test_nobody_has_gone_here() -> None:
    reader, writer = os.pipe()
    code = "from arena.cli import streams; raise SystemExit(int(streams.reader_has_gone()))"
    with os.fdopen(reader), os.fdopen(writer, "wb") as output:
        assert subprocess.run([sys.executable, "-c", code], stdout=output, check=False).returncode == 0
    assert streams.READER_GONE == 128 + 13
