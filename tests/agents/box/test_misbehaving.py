"""Agents that do what they must not: each ends as designed, nothing leaks, nothing is left."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import arena
from arena.agents.box import BoxPlan, bubblewrap, fallback, read_candidate
from arena.processes.sandbox.usage import UNMEASURABLE
from tests.agents.box import boxes

PROJECT = Path(arena.__file__).resolve().parents[1]


def left_in(plan: BoxPlan) -> list[str]:
    """Commands of living processes that know the plan's folders: by their current folder or an environment variable."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
            marked = b"MARK=" + plan.home.parent.name.encode() in (process / "environ").read_bytes()
            if marked and state not in "ZX":
                found.append((process / "cmdline").read_bytes().decode())
        except OSError:
            continue
    return found


@pytest.fixture
def marked(plan: BoxPlan) -> BoxPlan:
    """A plan whose processes can be told by their environment, however they hide."""
    return replace(plan, environment={"MARK": plan.home.parent.name})


def test_one_that_never_stops_is_ended(kind: str, marked: BoxPlan) -> None:
    with boxes.make(kind, marked) as box:
        boxed = box.start(boxes.misbehave(kind, marked, "never_stops.py"))
        assert boxed.stdout.readline() == b"busy\n"
        assert left_in(marked)
        started = time.monotonic()
        boxed.kill()
        assert time.monotonic() - started < 60
        assert boxed.poll() is not None
        assert not left_in(marked)


def test_a_daemon_ends_with_its_agent(kind: str, marked: BoxPlan) -> None:
    with boxes.make(kind, marked) as box:
        boxed = box.start(boxes.misbehave(kind, marked, "leaves_a_daemon.py"))
        outcome = boxes.finish(boxed)
        assert outcome.code == 0, outcome
        boxed.kill()
        assert not left_in(marked)


def test_a_daemon_ends_with_its_box(kind: str, marked: BoxPlan) -> None:
    with boxes.make(kind, marked) as box:
        box.start(["sh", "-c", "(setsid sleep 1000 &) ; sleep 1000"])
        boxes.wait_until(lambda: len(left_in(marked)) >= 2)
    assert not left_in(marked)


@pytest.mark.slow(but=["bubblewrap-False"])
@pytest.mark.parametrize("paused", [False, True])
def test_nothing_outlives_a_harness_that_is_killed(kind: str, marked: BoxPlan, paused: bool) -> None:
    """The harness is a process of its own here, and gets SIGKILL while its agent has left a daemon."""
    boxes.make(kind, marked).__exit__(None, None, None)
    harness = f"""
import sys
from pathlib import Path
from tests.agents.box import boxes
from arena.agents.box import BoxPlan
plan = BoxPlan(workspace=Path({str(marked.workspace)!r}), home=Path({str(marked.home)!r}),
               tools=Path({str(marked.tools)!r}), environment={dict(marked.environment)!r})
box = boxes.make({kind!r}, plan)
boxed = box.start(["sh", "-c", "(setsid sleep 1000 &) ; echo; sleep 1000"])
boxed.stdout.readline()
{"boxed.pause()" if paused else ""}
print("started", flush=True)
sys.stdin.read()
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(PROJECT), *sys.path))}
    with subprocess.Popen(
        [sys.executable, "-c", harness], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        boxes.wait_until(lambda: len(left_in(marked)) >= 2)
        process.kill()
    boxes.wait_until(lambda: not left_in(marked))


def test_one_that_wakes_itself_is_held_by_the_freezer(kind: str, plan: BoxPlan) -> None:
    with boxes.make(kind, plan) as box:
        boxed = box.start(boxes.misbehave(kind, plan, "wakes_itself.py"))
        if "freezer" not in box.isolation:
            pytest.skip("no control group can be made here: a signal alone does not hold this one")
        assert boxed.stdout.readline() == b"ready\n"
        boxes.wait_until(lambda: ticks_of("wakes_itself.py") > 0)
        boxed.pause()
        before = ticks_of("wakes_itself.py")
        time.sleep(0.4)
        assert ticks_of("wakes_itself.py") == before
        boxed.resume()
        boxes.wait_until(lambda: ticks_of("wakes_itself.py") > before)


def ticks_of(script: str) -> int:
    """Processor time of the process that runs a script."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if words[-2:-1] == [script.encode()] and words[1:2] == [b"-I"]:
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                return int(fields[11]) + int(fields[12])
        except OSError:
            continue
    return 0


def test_one_that_fills_the_disk_is_noticed(plan: BoxPlan) -> None:
    plan = replace(plan, file_bytes=4 << 20, disk_bytes=8 << 20)
    with boxes.make("bubblewrap", plan) as box:
        boxed = box.start(boxes.misbehave("bubblewrap", plan, "fills_the_disk.py", str(64 << 20)))
        report = json.loads(boxed.stdout.readline())
        assert report["one_file"] == 4 << 20
        assert not any(report["elsewhere"].values())
        # The tree of folders is deeper than any path: nothing can be said of what lies at its end.
        boxes.wait_until(lambda: boxed.disk_used() >= UNMEASURABLE)


def test_deep_folders_apart_all_that_is_written_counts(plan: BoxPlan) -> None:
    script = "for i in 1 2 3; do head -c 1000000 /dev/zero > $i; cp $i ~/$i; done; "
    script += "exec 3<>x; rm x; head -c 2000000 /dev/zero >&3; echo; sleep 60"
    with boxes.make("bubblewrap", plan) as box:
        boxed = box.start(["sh", "-c", script])
        boxed.stdout.readline()
        assert 8_000_000 <= boxed.disk_used() < 9_000_000


def test_one_that_deletes_everything_deletes_only_its_own(plan: BoxPlan) -> None:
    shutil.copy(boxes.MISBEHAVING / "deletes_everything.sh", plan.workspace)
    (plan.workspace / "kernel.py").write_text("x")
    (plan.tools / "tool").write_text("x")
    outcome = boxes.run("bubblewrap", plan, ["sh", "deletes_everything.sh"])
    assert outcome.stdout == "done\n"
    assert read_candidate(plan.workspace, "kernel.py", 100) is None
    assert (plan.tools / "tool").exists() and plan.workspace.is_dir() and plan.home.is_dir()


@contextmanager
def secrets_outside(place: Path) -> Iterator[tuple[list[Path], int]]:
    """A canary in everything an agent might look into: the paths, and a process that has it too."""
    canary = f"canary-{secrets.token_hex(16)}"
    paths = [
        place / "project" / "tasks" / "norm" / "heldout.yaml",
        place / "project" / "tasks" / "norm" / "expert.py",
        place / "runs" / "other" / "transcripts" / "agent" / "other.0" / "raw.jsonl",
        place / "other trial" / "kernel.py",
        place / "project" / ".git" / "objects" / "ab" / "cdef",
    ]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(canary)
    paths[-1].write_bytes(zlib.compress(f"blob 39\0{canary}".encode()))
    held = paths[0].open("rb")
    keeper = [sys.executable, "-c", "import time; time.sleep(600)", canary]
    with (
        held,
        subprocess.Popen(keeper, env={"CANARY": canary}, cwd=paths[0].parent, pass_fds=(held.fileno(),)) as other,
    ):
        try:
            yield paths, other.pid
        finally:
            other.kill()


@pytest.mark.slow
@pytest.mark.parametrize("network", [False, True])
def test_one_that_searches_finds_nothing(place: Path, plan: BoxPlan, network: bool) -> None:
    with secrets_outside(place) as (paths, _):
        # A shown folder holds what must not be seen, and the project holds what must be shown.
        program = place / "project" / "installed" / "program"
        program.parent.mkdir()
        program.write_text("shown")
        hide = (place / "project", place / "runs", place / "other trial")
        plan = replace(plan, show=(program.parent, place), hide=hide, network=("192.0.2.1:443",) if network else ())
        wanted = [*map(str, paths), str(PROJECT / "tasks"), str(PROJECT / "arena" / "__init__.py")]
        with boxes.make("bubblewrap", plan) as box:
            outcome = boxes.finish(box.start(boxes.misbehave("bubblewrap", plan, "searches.py", *wanted)))
            assert outcome.code == 0, outcome.stderr
            assert outcome.last == {"seen": {}}
            seen = boxes.finish(box.start(["cat", str(program)]))
            assert seen.stdout == "shown", seen
            for path in (*hide[1:], PROJECT / "tasks", PROJECT / "arena", PROJECT / ".git", PROJECT / "runs"):
                listed = boxes.finish(box.start(["ls", "-A", str(path)]))
                assert listed.stdout == "", path
    assert all(path.exists() for path in paths)


@pytest.mark.slow
@pytest.mark.parametrize("users", [("--unshare-user", "--uid", "1000", "--gid", "1000"), ()])
def test_a_weaker_bubblewrap_shows_nothing_either(place: Path, plan: BoxPlan, users: tuple[str, ...]) -> None:
    """One that lets user namespaces be nested, and one of root without any."""
    found = bubblewrap.features()
    if not found.works or (not users and os.geteuid() != 0):
        pytest.skip(found.problem or "only root can do without a user namespace")
    with secrets_outside(place) as (paths, process):
        plan = replace(plan, show=(place,), hide=(place / "project", place / "runs", place / "other trial"))
        with bubblewrap.BubblewrapBox(plan, replace(found, users=users)) as box:
            search = boxes.misbehave("bubblewrap", plan, "searches.py", *map(str, paths), str(PROJECT / "tasks"))
            assert boxes.finish(box.start(search)).last == {"seen": {}}
            signals = boxes.misbehave("bubblewrap", plan, "signals_others.py", str(process), str(os.getpid()))
            assert boxes.finish(box.start(signals)).last == {"reached": []}


@pytest.mark.slow
def test_the_search_itself_finds_what_is_shown(place: Path, plan: BoxPlan) -> None:
    """Against a search that is blind: the same program, with nothing hidden."""
    with secrets_outside(place) as (paths, _):
        shown = replace(plan, show=(place,))
        outcome = boxes.run("bubblewrap", shown, boxes.misbehave("bubblewrap", plan, "searches.py", *map(str, paths)))
    assert {"absolute path", "symbolic link", "find by name", "find by content"} <= outcome.last["seen"].keys()


def test_without_bubblewrap_folders_are_hidden_where_namespaces_can_be_had(place: Path, plan: BoxPlan) -> None:
    if "mount" not in fallback.describe():
        pytest.skip("no mount namespace can be had here")
    with secrets_outside(place) as (paths, _):
        hide = (place / "project", place / "runs", place / "other trial")
        plan = replace(plan, hide=hide)
        script = (
            f"cat {' '.join(repr(str(path)) for path in paths)}; ls {PROJECT}/tasks {PROJECT}/runs; cat /proc/1/environ"
        )
        outcome = boxes.run("fallback", plan, ["sh", "-c", script])
        assert "canary" not in outcome.stdout
        assert not any((name in outcome.stdout) for name in ("hip2hip", "triton2triton"))


@pytest.mark.parametrize("network", [False, True])
def test_signals_reach_nobody_outside(place: Path, plan: BoxPlan, network: bool) -> None:
    plan = replace(plan, network=("192.0.2.1:443",) if network else ())
    with secrets_outside(place) as (_, process):
        outside = [str(process), str(os.getpid()), str(os.getppid())]
        outcome = boxes.run("bubblewrap", plan, boxes.misbehave("bubblewrap", plan, "signals_others.py", *outside))
        assert outcome.last["reached"] == [], outcome
        assert Path(f"/proc/{process}").exists()


@contextmanager
def listening() -> Iterator[tuple[int, str]]:
    """A server on this machine's loopback address, and an abstract socket."""
    name = f"arena-{secrets.token_hex(8)}"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind("\0" + name)
        local.listen()
        yield server.getsockname()[1], name


@pytest.mark.slow(but=["bubblewrap-allowed0"])
@pytest.mark.parametrize("allowed", [(), ("192.0.2.1:443", "127.0.0.1:1")])
def test_connections_lead_nowhere(kind: str, plan: BoxPlan, allowed: tuple[str, ...]) -> None:
    with listening() as (port, name), boxes.make(kind, replace(plan, network=allowed)) as box:
        if kind == "fallback" and "network" not in fallback.describe():
            pytest.skip("no network namespace can be had here")
        boxed = box.start(boxes.misbehave(kind, plan, "connects.py", str(port), name))
        outcome = boxes.finish(boxed)
        assert outcome.last == {"reached": []}, outcome.stderr
        expected = {f"127.0.0.1:{port}", "example.com:80", "example.com:443"} if allowed else set()
        assert expected <= set(box.refused)
        assert bool(box.refused) == bool(allowed)


def test_too_many_processes_are_refused(plan: BoxPlan) -> None:
    if os.geteuid() == 0:
        pytest.skip("the kernel exempts root from this limit; a control group with `pids` would hold it")
    outcome = boxes.run(
        "bubblewrap", replace(plan, processes=40), ["sh", "-c", "for i in $(seq 80); do sleep 5 & done"]
    )
    assert "fork" in outcome.stderr.lower()


def test_a_pause_holds_what_starts_processes_all_the_time(kind: str, plan: BoxPlan) -> None:
    script = "for i in 1 2 3; do (while :; do /bin/true; echo x >> $i; done) & done; echo; wait"
    with boxes.make(kind, plan) as box:
        boxed = box.start(["sh", "-c", script])
        boxed.stdout.readline()
        boxes.wait_until(lambda: all((plan.workspace / name).exists() for name in "123"))
        for _ in range(5):
            boxed.pause()
            before = written(plan)
            time.sleep(0.05)
            assert written(plan) == before
            boxed.resume()
            boxes.wait_until(lambda: written(plan) > before)  # noqa: B023


def written(plan: BoxPlan) -> int:
    """Bytes in the workspace."""
    return sum(file.stat().st_size for file in plan.workspace.iterdir())


def test_a_thread_may_start_a_box_and_wait_for_it(kind: str, plan: BoxPlan) -> None:
    outcomes: list[boxes.Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(boxes.run(kind, plan, ["sh", "-c", "sleep 0.2; echo x"])))
    thread.start()
    thread.join()
    assert outcomes[0].stdout == "x\n"
