"""What a worker is allowed: decided here, without a worker."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from arena.package import tasks_of_other_copies
from arena.processes.sandbox import places, visible
from arena.task.corpus.task_folder import TASKS, hidden_from_candidates, load_task


def test_of_a_checkout_only_the_package_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "checkout" / "arena"
    package.mkdir(parents=True)
    monkeypatch.setattr(places, "PACKAGE", package)
    monkeypatch.setattr(sys, "path", ["", str(package.parent), str(tmp_path / "missing")])
    allowed = places.for_python_worker((), (), ())
    assert str(package) in allowed.read
    assert not {str(package.parent), str(tmp_path)} & {*allowed.read, *allowed.listed}


def test_a_checkout_that_is_installed_while_another_one_runs_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its corpus has the held-out cases of the one that runs."""
    other, data = tmp_path / "other", tmp_path / "site-packages/arena/data"
    for folder in (other / "arena", other / "tasks", data / "tasks", tmp_path / "modules"):
        folder.mkdir(parents=True)
    for package in (other / "arena", data.parent):
        (package / "__init__.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(other), str(tmp_path / "modules"), str(data.parents[1])])
    allowed = places.for_python_worker((), (), ())
    assert str(tmp_path / "modules") in allowed.read
    assert str(other) not in {*allowed.read, *allowed.listed}
    assert tasks_of_other_copies() == (other / "tasks", data / "tasks")
    task = load_task(TASKS / "triton2triton/normalization/rms_norm")
    assert {other / "tasks", data / "tasks"} <= set(hidden_from_candidates(task))


def test_of_an_installation_all_but_the_tasks_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    for name in ("arena/judge", "torch", "arena/data/tasks"):
        (site / name).mkdir(parents=True)
        (site / name / "file").write_text("")
    monkeypatch.setattr(places, "PACKAGE", site / "arena")
    monkeypatch.setattr(sys, "path", [str(site)])
    allowed = places.for_python_worker((), (), (str(site / "arena/data/tasks"),))
    assert {str(site / "arena/judge"), str(site / "torch")} <= set(allowed.read)
    assert str(site) in allowed.listed and str(site / "arena/data/tasks") not in {*allowed.read, *allowed.listed}


def test_a_host_writes_its_own_folders_and_devices_only(tmp_path: Path) -> None:
    allowed = places.for_python_worker((str(tmp_path),), (), ())
    outside = [path for path in allowed.write if not path.startswith("/dev/")]
    assert outside == [str(tmp_path), "/proc/self/task"]


def test_hidden_folders_that_are_empty_may_be_listed(tmp_path: Path) -> None:
    """In a mount namespace alone: elsewhere what is empty now may be filled later."""
    (tmp_path / "emptied").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    hidden = (str(tmp_path / "emptied"), str(tmp_path / "full"))
    assert set(hidden) & set(places.for_python_worker((), (), hidden, "session+mount").listed) == {hidden[0]}
    assert not set(hidden) & set(places.for_python_worker((), (), hidden, "session").listed)


def test_the_root_and_home_folders_are_in_no_list() -> None:
    allowed = places.for_python_worker((), (), ())
    for path in ("/", "/etc", "/home", "/root", "/tmp", "/var", str(Path.home())):
        assert path not in {*allowed.read, *allowed.write, *allowed.listed}, path


def test_shared_memory_is_open_where_it_is_the_hosts_own_or_a_gpus_libraries_need_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(visible, "device_files", list)
    assert "/dev/shm" not in places.for_python_worker((), (), (), "session+network").write
    assert "/dev/shm" in places.for_python_worker((), (), (), "session+network+mount+read-only").write
    monkeypatch.setattr(visible, "device_files", lambda: ["/dev/nvidia0"])
    assert "/dev/shm" in places.for_python_worker((), (), (), "session+network").write


def test_a_worker_that_needs_no_gpu_opens_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visible, "device_files", lambda: ["/dev/nvidia0", "/dev/kfd"])
    gpus = {"/dev/nvidia0", "/dev/kfd"}
    assert gpus <= set(places.for_python_worker((), (), ()).write)
    without = places.for_python_worker((), (), (), "session+network", gpus=False)
    assert not gpus & {*without.read, *without.write}
    assert "/dev/null" in without.write and "/dev/shm" not in without.write


def test_a_worker_without_python_is_shown_no_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Below a folder of the system's, too: PyTorch lies in there, and could be loaded by its path."""
    for name in ("lib", "dist-packages/torch", "program"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text("")
    monkeypatch.setattr(visible, "SYSTEM", (str(tmp_path),))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "dist-packages")])
    allowed = places.for_native_worker((), (str(tmp_path / "program"),), (), "session")
    assert {str(tmp_path / "lib"), str(tmp_path / "program")} <= set(allowed.read)
    assert not [path for path in (*allowed.read, *allowed.write) if "dist-packages" in path or path == str(tmp_path)]
    assert not {str(folder) for folder in visible.interpreter_folders()} & set(allowed.read)
    named = str(tmp_path / "dist-packages" / "torch" / "file")
    assert named in places.for_native_worker((), (named,), (), "session").read, "ROCm's runtime lies there"
    assert named not in places.for_native_worker((), (named,), (str(tmp_path / "dist-packages"),), "session").read
