"""./evaluate: hand a kernel to the judge and print what it says.

It runs inside the agent's box, as a file of its own: standard library only, Python 3.9 and later. The judge listens at
`$ARENA_TOOLS/service.sock`; the kernel is `$ARENA_KERNEL` unless another file is named.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PASSED, FAILED, USAGE, NO_VERDICT = 0, 1, 2, 3
MAX_KERNEL_BYTES = 1 << 20
_KERNELS = ("kernel.py", "kernel.hip")
_NO_VERDICT_STATUSES = (None, "harness_error")
REQUEST = "/episodes/workspace/evaluate"

DESCRIPTION = (
    "Hands a kernel to the judge, which compiles it, checks it on the seen cases and times it against the baseline. "
    "Every call that reaches the judge counts against the limit of evaluations. Waits as long as it takes."
)
EPILOG = """exit codes:
  0  passed
  1  evaluated, and not passed
  2  the call is wrong: no such file, unknown option
  3  no verdict: the judge cannot be reached, the limit is reached, or the judge failed

examples:
  ./evaluate
  ./evaluate variants/tiled.hip --json
"""


class UsageProblem(Exception):
    """The call is wrong."""


class NoAnswer(Exception):
    """The judge gave no answer."""


def main(arguments: list[str] | None = None, send: Callable[[str, bool], bytes] | None = None) -> int:
    """Run the command and return its exit code.

    `send` takes a kernel and whether to profile it, and returns the judge's answer; it raises `NoAnswer`. Without it
    the judge of the workspace is asked.
    """
    options = _parser().parse_args(arguments)
    try:
        kernel = _read(options.file)
        answer = _answer((send or ask)(kernel, options.profile))
    except UsageProblem as problem:
        return _complain(problem, USAGE)
    except NoAnswer as problem:
        return _complain(problem, NO_VERDICT)
    text = json.dumps(answer["result"], indent=2, ensure_ascii=False) if options.json else answer["text"]
    sys.stdout.buffer.write((text.rstrip("\n") + "\n").encode("utf-8", "replace"))  # whatever the locale is
    sys.stdout.flush()
    return exit_code(answer["result"].get("status"))


def exit_code(status: str | None) -> int:
    """The exit code for a status in the judge's answer; None is an answer without a verdict."""
    if status in _NO_VERDICT_STATUSES:
        return NO_VERDICT
    return PASSED if status == "passed" else FAILED


def ask(kernel: str, profile: bool) -> bytes:
    """Send one kernel to the judge of the workspace and wait for the answer; raises `NoAnswer`."""
    connection = _Connection(_socket_path())
    try:
        try:
            connection.connect()
        except OSError as problem:
            raise NoAnswer(f"the judge cannot be reached: {problem.strerror or problem}") from None
        body = json.dumps({"kernel": kernel, "profile": profile})
        with contextlib.suppress(OSError):  # it may have said why before it closed the connection
            connection.request("POST", REQUEST, body, {"Content-Type": "application/json"})
        try:
            return connection.getresponse().read()
        except (OSError, http.client.HTTPException) as problem:
            raise NoAnswer(f"the judge closed the connection without an answer: {problem}") from None
    finally:
        connection.close()


class _Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("arena")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self._path)


def _parser() -> argparse.ArgumentParser:
    shown = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("./evaluate", description=DESCRIPTION, epilog=EPILOG, formatter_class=shown)
    parser.add_argument("file", nargs="?", metavar="FILE", help="the kernel to evaluate; the workspace's own without")
    parser.add_argument("--json", action="store_true", help="print the answer as one JSON object")
    parser.add_argument("--profile", action="store_true", help="also say what the device's profiler can tell")
    return parser


def _read(named: str | None) -> str:
    """The text of the kernel."""
    path = Path(named) if named else _default()
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise UsageProblem(f"{path}: {problem.strerror}") from None
    if len(data) > MAX_KERNEL_BYTES:
        raise UsageProblem(f"{path}: {len(data)} bytes; a kernel file may have {MAX_KERNEL_BYTES}")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise UsageProblem(f"{path}: not UTF-8 text at byte {problem.start}") from None


def _default() -> Path:
    """The kernel of the workspace."""
    if os.environ.get("ARENA_KERNEL"):
        return Path(os.environ["ARENA_KERNEL"])
    found = [Path(name) for name in _KERNELS if Path(name).is_file()]
    if len(found) != 1:
        raise UsageProblem(f"name the kernel to evaluate: {'both' if found else 'none'} of {', '.join(_KERNELS)} here")
    return found[0]


def _socket_path() -> str:
    folder = os.environ.get("ARENA_TOOLS")
    if not folder:
        raise NoAnswer("the judge cannot be reached: ARENA_TOOLS is not set")
    return str(Path(folder) / "service.sock")


def _answer(body: bytes) -> dict[str, Any]:
    """The judge's answer; one that it refuses is told as an answer without a verdict."""
    try:
        answer = json.loads(body)
    except ValueError:
        raise NoAnswer("the judge's answer is no JSON") from None
    if isinstance(answer, dict) and isinstance(answer.get("error"), str):
        return {"text": answer["error"], "result": {"status": None, "detail": answer["error"]}}
    fits = isinstance(answer, dict) and isinstance(answer.get("text"), str) and isinstance(answer.get("result"), dict)
    if not fits:
        raise NoAnswer("the judge's answer has not the form that is expected")
    return dict(answer)


def _complain(problem: Exception, code: int) -> int:
    sys.stderr.write(f"evaluate: {problem}\n")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
