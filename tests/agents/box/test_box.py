"""What every box does, by bubblewrap or not."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from arena.agents.box import BoxPlan, bubblewrap, open_box, probe
from arena.errors import InfrastructureError
from tests.agents.box import boxes


def test_the_command_gets_its_folders_environment_and_input(kind: str, plan: BoxPlan) -> None:
    plan = replace(plan, environment={"SECRET": "s3cret", "HOME": "/elsewhere"})
    (plan.tools / "tool").write_text("a tool")
    script = 'cat; echo "$SECRET"; echo "$PWD"; cat "$ARENA_TOOLS/tool"; touch made "$HOME/made" "$TMPDIR/made"; exit 7'
    with boxes.make(kind, plan) as box:
        outcome = boxes.finish(box.start(["sh", "-c", script], b"line\n"))
        assert outcome.stdout == f"line\ns3cret\n{box.workspace}\na tool"
    assert outcome.code == 7 and not outcome.stderr
    assert (plan.workspace / "made").exists() and (plan.home / "made").exists()


def test_an_environment_can_be_given_when_the_command_starts(kind: str, plan: BoxPlan) -> None:
    with boxes.make(kind, replace(plan, environment={"ONE": "1", "TWO": "1"})) as box:
        outcome = boxes.finish(box.start(["sh", "-c", 'echo "$ONE$TWO$THREE"'], b"", {"TWO": "2", "THREE": "3"}))
    assert outcome.stdout == "123\n"


def test_nothing_of_our_environment_is_inherited(kind: str, plan: BoxPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_HARNESS", "1")
    names = {line.partition("=")[0] for line in boxes.run(kind, plan, ["env"]).stdout.splitlines()}
    assert names <= {"HOME", "PATH", "PWD", "TMPDIR", "ARENA_TOOLS", "USER", "LOGNAME", "SHELL", "OLDPWD", "SHLVL", "_"}


def test_secrets_stand_on_no_command_line(kind: str, plan: BoxPlan) -> None:
    with boxes.make(kind, replace(plan, environment={"KEY": "never-on-a-command-line"})) as box:
        box.start(["sleep", "60"])
        lines = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                lines.append((folder / "cmdline").read_bytes())
            except OSError:
                continue
    assert any(b"sleep" in line for line in lines)
    assert not any(b"never-on-a-command-line" in line for line in lines)


def test_a_missing_program_is_said_to_be_missing(kind: str, plan: BoxPlan) -> None:
    with boxes.make(kind, plan) as box, pytest.raises(FileNotFoundError, match="no-such-program"):
        box.start(["no-such-program"])


def test_only_workspace_and_home_can_be_written(kind: str, plan: BoxPlan) -> None:
    with boxes.make(kind, plan) as box:
        if kind == "fallback" and not fallback_can(box, "read-only"):
            pytest.skip("the fallback cannot make folders read-only here")
        places = " ".join(f"{folder}/x" for folder in ("", "/etc", "/usr", "/opt", "/var", box.tools))
        outcome = boxes.finish(box.start(["sh", "-c", f"for f in {places}; do touch $f && echo $f; done; true"]))
    assert outcome.stdout == ""


def test_files_have_a_limit(kind: str, plan: BoxPlan) -> None:
    plan = replace(plan, file_bytes=1 << 20)
    boxes.run(kind, plan, ["sh", "-c", "head -c 5000000 /dev/zero > large"])
    assert (plan.workspace / "large").stat().st_size == 1 << 20


def test_a_socket_among_the_tools_can_be_connected_to(kind: str, plan: BoxPlan) -> None:
    path = plan.tools / "service.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        asker = "import os,socket; s=socket.socket(socket.AF_UNIX); "
        asker += "s.connect(os.environ['ARENA_TOOLS']+'/service.sock'); "
        with boxes.make(kind, plan) as box:
            boxed = box.start([boxes.python(kind), "-c", asker + "print(s.recv(9).decode())"])
            listener.settimeout(60)
            connection, _ = listener.accept()
            connection.sendall(b"answer")
            connection.close()
            assert boxes.finish(boxed).stdout == "answer\n"


def test_an_exit_by_signal_is_told(kind: str, plan: BoxPlan) -> None:
    assert boxes.run(kind, plan, ["sh", "-c", "kill -TERM $$"]).code == 128 + 15


def test_disk_used_counts_deleted_files_that_are_open(kind: str, plan: BoxPlan) -> None:
    script = "head -c 3000000 /dev/zero > kept; exec 3<>gone; rm gone; head -c 5000000 /dev/zero >&3; echo; sleep 60"
    with boxes.make(kind, plan) as box:
        boxed = box.start(["sh", "-c", script])
        boxed.stdout.readline()
        assert 8_000_000 <= boxed.disk_used() <= 8_500_000


def test_a_pause_holds_a_busy_process(kind: str, plan: BoxPlan) -> None:
    with boxes.make(kind, plan) as box:
        boxed = box.start(["sh", "-c", "while :; do :; done & while :; do :; done & echo; wait"])
        boxed.stdout.readline()
        boxed.pause()
        before = busy_ticks(plan)
        time.sleep(0.4)
        assert busy_ticks(plan) == before and len(before) == 3
        boxed.resume()
        boxes.wait_until(lambda: sum(busy_ticks(plan).values()) > sum(before.values()) + 5)


def test_a_pause_without_a_freezer_holds_too(kind: str, plan: BoxPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.processes.sandbox.cgroup.own_group", lambda: None)
    test_a_pause_holds_a_busy_process(kind, plan)


def test_a_paused_box_can_be_killed(kind: str, plan: BoxPlan) -> None:
    with boxes.make(kind, plan) as box:
        boxed = box.start(["sleep", "60"])
        boxed.pause()
        boxed.kill()
        assert boxed.poll() is not None
        boxed.resume()
        boxed.kill()


def test_pauses_from_other_threads_and_after_the_end_do_no_harm(kind: str, plan: BoxPlan) -> None:
    with boxes.make(kind, plan) as box:
        boxed = box.start(["true"])
        boxes.wait_until(lambda: boxed.poll() is not None)

        def both() -> None:
            boxed.pause()
            boxed.resume()

        threads = [threading.Thread(target=both) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert boxed.poll() == 0


def test_bubblewrap_is_taken_where_it_works(plan: BoxPlan) -> None:
    with open_box(plan) as box:
        assert box.isolation.startswith("bubblewrap" if bubblewrap.features().works else "fallback")
    assert probe()


def test_bubblewrap_says_what_it_cannot_do(plan: BoxPlan) -> None:
    found = bubblewrap.features()
    if not found.works:
        pytest.skip(found.problem)
    broken = replace(found, users=("--no-such-option",))
    with bubblewrap.BubblewrapBox(plan, broken) as box, pytest.raises(InfrastructureError, match="no-such-option"):
        box.start(["true"])


def fallback_can(box: object, level: str) -> bool:
    from arena.agents.box import fallback

    return level in fallback.describe()


def busy_ticks(plan: BoxPlan) -> dict[str, int]:
    """Processor time, in clock ticks, of the shells that work in the plan's workspace."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            here = (process / "cwd").samefile(plan.workspace)
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            if here and (process / "comm").read_text() == "sh\n":
                found[process.name] = int(fields[11]) + int(fields[12])
        except OSError:
            continue
    return found
