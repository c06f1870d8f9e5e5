"""The watchdog on real processes: what it counts, what it kills, and what it leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.judge.workers import watchdog
from arena.judge.workers.watchdog import LOG_LIMIT_BYTES, Family, Taken, Watch, cut, memory_limit_bytes
from arena.results.verdict import Status

MIB = 1 << 20
HOLD = "import sys, time; held = bytearray(b'1') * ({mib} << 20); print('held', flush=True); time.sleep(60)"
PARENT = (
    "import subprocess, sys, time; "
    "child = subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True); time.sleep(60)"
)


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def start(started: list[subprocess.Popen[bytes]], *command: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", *command], stdout=subprocess.PIPE, start_new_session=True)
    started.append(process)
    return process


def ready(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None and process.stdout.readline() == b"held\n"


def test_what_a_process_takes_is_seen_and_ends_it(started: list[subprocess.Popen[bytes]]) -> None:
    process = start(started, HOLD.format(mib=200))
    watch = Watch(process.pid, 150 * MIB)
    assert process.wait(10) == -9
    watch.end()
    assert "at most 0.1 GiB is allowed" in watch.verdict


def test_a_process_that_cannot_be_watched_is_ended(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(self: Family) -> Taken:
        raise ValueError("no number")

    monkeypatch.setattr(Family, "taken", unreadable)
    process = start(started, HOLD.format(mib=1))
    watch = Watch(process.pid, 150 * MIB)
    assert process.wait(10) == -9
    watch.end()
    assert watch.status is Status.CRASH and "ValueError: no number" in watch.verdict


def test_a_modest_process_is_left_alone_until_the_watch_ends(started: list[subprocess.Popen[bytes]]) -> None:
    process = start(started, HOLD.format(mib=1))
    ready(process)
    watch = Watch(process.pid, 150 * MIB)
    time.sleep(4 * watchdog.INTERVAL_S)
    assert process.poll() is None and watch.verdict == ""
    watch.end()
    assert process.wait(10) == -9


def test_it_rests_while_something_is_measured_and_looks_again(started: list[subprocess.Popen[bytes]]) -> None:
    watching = start(started, "import time; time.sleep(0.5); " + HOLD.format(mib=200))
    watch = Watch(watching.pid, 150 * MIB)
    watch.rest(60.0)
    ready(watching)
    time.sleep(4 * watchdog.INTERVAL_S)
    assert watching.poll() is None
    watch.rest(0.0)
    assert watching.wait(10) == -9
    watch.end()


def test_a_child_in_a_session_of_its_own_counts_and_dies(started: list[subprocess.Popen[bytes]]) -> None:
    parent = start(started, PARENT, HOLD.format(mib=200))
    ready(parent)  # the child inherits its output
    family = Family(parent.pid)
    assert len(family.members()) == 2 and family.taken().memory > 200 * MIB
    parent.kill()
    parent.wait(60)
    (orphan,) = family.members()
    family.kill()
    deadline = time.monotonic() + 60
    while family.members() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert family.members() == [] and orphan != parent.pid


def test_a_process_that_is_gone_is_no_family() -> None:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    family = Family(done.pid)
    assert family.members() == [] and family.taken() == (0, 0)
    family.kill()


def test_a_log_is_emptied_and_written_from_its_beginning() -> None:
    with tempfile.TemporaryFile() as log:
        os.truncate(log.fileno(), LOG_LIMIT_BYTES)
        cut(log.fileno())
        assert os.fstat(log.fileno()).st_size == LOG_LIMIT_BYTES
        os.lseek(log.fileno(), 0, os.SEEK_END)
        writer = os.dup(log.fileno())  # as a worker holds it
        os.write(writer, b"one byte too many")
        cut(log.fileno())
        os.write(writer, b"the last words")
        os.close(writer)
        log.seek(0)
        text = log.read()
    assert text.startswith(b"[more than 64 MiB") and text.endswith(b"the last words") and len(text) < 200


def test_half_of_the_memory_at_most() -> None:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < memory_limit_bytes() <= total // 2


def test_hosts_are_ended_before_others(started: list[subprocess.Popen[bytes]]) -> None:
    process = start(started, HOLD.format(mib=1))
    ready(process)
    watch = Watch(process.pid, 1 << 40)
    assert Path(f"/proc/{process.pid}/oom_score_adj").read_text(encoding="ascii").strip() == "1000"
    watch.end()


MEMFD = """
import os, time
file = os.memfd_create("kept")
for _ in range(200):
    os.write(file, bytes(1 << 20))
print("held", flush=True)
time.sleep(60)
"""
DELETED = MEMFD.replace('os.memfd_create("kept")', 'os.open(os.environ["TMPDIR"], os.O_TMPFILE | os.O_RDWR)')
THREADS = """
import threading, time
for _ in range(50):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("held", flush=True)
time.sleep(60)
"""


def test_files_in_memory_count_though_they_are_not_mapped(started: list[subprocess.Popen[bytes]]) -> None:
    process = start(started, MEMFD)
    ready(process)
    assert Family(process.pid).taken().memory > 200 * MIB
    watch = Watch(process.pid, 150 * MIB)
    assert process.wait(10) == -9
    watch.end()
    assert watch.status is Status.OUT_OF_MEMORY


def test_files_that_were_written_have_a_total_and_so_have_deleted_ones(
    started: list[subprocess.Popen[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "DISK_LIMIT_BYTES", 150 * MIB)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for index in range(10):
        (tmp_path / f"inner{index}").mkdir()
        (tmp_path / f"inner{index}" / "file").write_bytes(bytes(MIB))
    modest, other = start(started, HOLD.format(mib=1)), start(started, DELETED)
    ready(other)
    kept, ended = Watch(modest.pid, 1 << 40, None, [tmp_path]), Watch(other.pid, 1 << 40, None, [tmp_path])
    assert other.wait(10) == -9 and modest.poll() is None
    assert ended.status is Status.CRASH and "of files; at most 0.1 GiB" in ended.verdict
    for watch in (kept, ended):
        watch.end()


def test_a_host_of_too_many_threads_is_ended(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "MOST_THREADS", 40)
    process = start(started, THREADS)
    ready(process)
    watch = Watch(process.pid, 1 << 40)
    assert process.wait(10) == -9
    watch.end()
    assert watch.status is Status.CRASH and "51 processes and threads, at most 40" in watch.verdict
