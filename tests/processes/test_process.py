"""The one helper that runs child processes."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from arena.processes.process import Finished, kill_group, run


def shell(script: str, *, timeout_s: float = 60, stdin: bytes = b"", log_limit_bytes: int = 1 << 18) -> Finished:
    return run(["/bin/sh", "-c", script], timeout_s=timeout_s, stdin=stdin, log_limit_bytes=log_limit_bytes)


def gone(pid: int) -> bool:
    """Whether a process has ended; one that waits for its parent to notice has."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", -9)])
def test_the_exit_code(script: str, code: int) -> None:
    done = shell(script)
    assert (done.returncode, done.timed_out, done.ok) == (code, False, code == 0)


def test_output_is_merged_in_order() -> None:
    assert shell("echo one; echo two >&2; echo three").output == "one\ntwo\nthree\n"


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert shell(r"printf 'a\377b'").output == "a\ufffdb"


def test_a_timeout_kills_grandchildren_and_keeps_what_was_printed() -> None:
    started = time.monotonic()
    done = shell("sleep 600 & echo $!; sleep 601 & echo $!; echo begun; wait", timeout_s=0.3)
    assert time.monotonic() - started < 60 and 0.3 <= done.seconds < 60
    assert done.timed_out and not done.ok and done.returncode == -9
    *pids, last = done.output.split()
    assert last == "begun" and len(pids) == 2
    assert all(gone(int(pid)) for pid in pids)


def test_a_child_that_closes_its_output_still_times_out() -> None:
    done = shell("exec >/dev/null 2>&1; sleep 600", timeout_s=0.3)
    assert done.timed_out and done.seconds < 60


def test_what_a_child_leaves_behind_is_killed_and_not_waited_for() -> None:
    done = shell("sleep 600 & echo $!", timeout_s=60)
    assert done.ok and done.seconds < 60
    assert gone(int(done.output))


def test_output_beyond_the_limit_is_dropped_and_counted() -> None:
    done = shell("head -c 300000 /dev/zero | tr '\\0' x; echo end", log_limit_bytes=1000)
    text, note = done.output.split("\n", 1)
    assert done.ok and text == "x" * 1000
    assert note == "[299004 more bytes of output dropped]"


def test_an_endless_talker_ends_at_the_timeout() -> None:
    done = shell("yes", timeout_s=0.3, log_limit_bytes=100)
    assert done.timed_out and done.output.startswith("y\ny\n") and len(done.output) < 200


def test_input_is_given_or_empty() -> None:
    assert shell("cat", stdin=b"hello").output == "hello"
    assert shell("cat").output == ""


def test_much_input_blocks_nobody() -> None:
    """More than a pipe holds: to a child that answers while it reads, and to one that never reads."""
    many = b"x" * (1 << 20)
    assert len(shell("cat", stdin=many, log_limit_bytes=1 << 21).output) == 1 << 20
    unread = shell("sleep 600", stdin=many, timeout_s=0.3)
    assert unread.timed_out and unread.seconds < 60
    assert shell("exit 3", stdin=many).returncode == 3


def test_folder_environment_and_session(tmp_path: Path) -> None:
    code = "import os; print(os.getcwd(), os.environ.get('HOME'), os.environ['A'], os.getsid(0) == os.getpid())"
    done = run([Path(sys.executable), "-c", code], timeout_s=60, cwd=tmp_path, env={"A": "b"})
    assert done.output.split() == [str(tmp_path), "None", "b", "True"]


def test_a_missing_program_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run([tmp_path / "nothing"], timeout_s=1)


def test_no_descriptor_is_left_open() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    shell("exit 1", stdin=b"x")
    shell("sleep 5", timeout_s=0.05)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_killing_a_group_that_is_gone_is_fine() -> None:
    kill_group(2**22 - 1)


def test_files_can_be_limited(tmp_path: Path) -> None:
    file = tmp_path / "file"
    command = [sys.executable, "-c", f"open({str(file)!r}, 'wb').write(bytes(1 << 20))"]
    assert run(command, timeout_s=60, file_bytes=1 << 20).ok
    assert not run(command, timeout_s=60, file_bytes=1 << 16).ok
    assert file.stat().st_size == 1 << 16
