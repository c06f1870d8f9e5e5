"""Lines come as they are printed; a long one is cut, and a program that holds its pipes open is not waited for."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from arena.agents import cli_agent
from arena.agents.cli_agent import Line, Lines


@contextmanager
def program(text: str) -> Iterator[tuple[subprocess.Popen[bytes], Lines]]:
    with subprocess.Popen(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        try:
            yield child, Lines(child.stdout, child.stderr)
        finally:
            child.kill()


def test_both_streams_in_order() -> None:
    with program(r"import sys; print('a\nb'); print('x', file=sys.stderr); print(b'\xff')") as (child, found):
        child.wait(20)
        taken = list(found.finish(5))
    assert [line.text for line in taken if line.stream == "stdout"] == ["a", "b", "b'\\xff'"]
    assert Line("stderr", "x") in taken


def test_a_line_comes_before_the_program_ends() -> None:
    with program("import time; print('now', flush=True); time.sleep(600)") as (_, found):
        assert list(found.take(20)) == [Line("stdout", "now")]
        started = time.monotonic()
        assert list(found.finish(0.2)) == []
        assert time.monotonic() - started < 60


def test_a_long_line_is_cut_and_the_next_one_whole() -> None:
    with program(f"print('y' * {3 * cli_agent.LINE_LIMIT_BYTES}); print('next')") as (child, found):
        taken = list(found.finish(20))
        child.wait(20)
    assert [len(line.text) for line in taken] == [cli_agent.LINE_LIMIT_BYTES, 4]


def test_more_lines_than_are_read_ahead() -> None:
    with program("for i in range(5000): print(i)") as (_, found):
        assert [line.text for line in found.finish(20)] == [str(index) for index in range(5000)]
