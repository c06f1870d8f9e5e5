"""Which folders are shown and hidden: decided here, without a box."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from arena.agents.box.fallback import around
from arena.package import own_folders
from arena.processes.sandbox import visible
from arena.processes.sandbox.visible import Mount, Way


def test_links_of_the_system_stay_links_and_etc_is_chosen(tmp_path: Path) -> None:
    (tmp_path / "usr" / "lib").mkdir(parents=True)
    (tmp_path / "lib").symlink_to("usr/lib")
    for name in ("hosts", "shadow", "localtime", "pip.conf"):
        (tmp_path / "etc").mkdir(exist_ok=True)
        (tmp_path / "etc" / name).touch()
    mounts = visible.system_mounts(tmp_path)
    assert Mount(Way.LINK, "/lib", "usr/lib") in mounts
    assert Mount(Way.READ_ONLY, "/usr", str(tmp_path / "usr")) in mounts
    assert [mount.place for mount in mounts if mount.place.startswith("/etc")] == ["/etc/localtime"]


def test_a_hidden_folder_in_a_shown_one_is_emptied_and_what_is_shown_in_it_stays(tmp_path: Path) -> None:
    (tmp_path / "project" / ".venv").mkdir(parents=True)
    shown = visible.shown_mounts([tmp_path, tmp_path / "project" / ".venv"])
    ordered = visible.in_order([*shown, *visible.hiding_mounts([tmp_path / "project"], shown)])
    assert [(mount.way, Path(mount.place).name) for mount in ordered] == [
        (Way.READ_ONLY, tmp_path.name),
        (Way.EMPTY, "project"),
        (Way.READ_ONLY, ".venv"),
    ]
    assert visible.is_shown(str(tmp_path / "x"), ordered)
    assert not visible.is_shown(str(tmp_path / "project" / "x"), ordered)
    assert visible.is_shown(str(tmp_path / "project" / ".venv" / "bin"), ordered)


def test_a_folder_that_is_shown_and_hidden_is_hidden(tmp_path: Path) -> None:
    shown = visible.shown_mounts([tmp_path])
    ordered = visible.in_order([*shown, *visible.hiding_mounts([tmp_path], shown)])
    assert [mount.way for mount in ordered] == [Way.EMPTY]


def test_hiding_reaches_through_links(tmp_path: Path) -> None:
    (tmp_path / "real" / "secret").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    shown = visible.shown_mounts([tmp_path / "link"])
    assert {mount.place for mount in shown} == {str(tmp_path / "link"), str(tmp_path / "real")}
    hidden = visible.hiding_mounts([tmp_path / "link" / "secret"], shown)
    assert {mount.place for mount in hidden} == {str(tmp_path / "link" / "secret"), str(tmp_path / "real" / "secret")}


def test_a_hidden_file_is_emptied(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    shown = visible.shown_mounts([tmp_path])
    assert visible.hiding_mounts([tmp_path / "secret"], shown) == [
        Mount(Way.READ_ONLY, str(tmp_path / "secret"), os.devnull)
    ]


def test_the_search_path_holds_only_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cli/bin", "cli/node_modules/.bin", "ours"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{tmp_path}/ours:/usr/bin")
    mounts = visible.in_order([*visible.system_mounts(), *visible.shown_mounts([tmp_path / "cli"])])
    entries = visible.search_path([tmp_path / "cli"], mounts).split(":")
    assert entries[:2] == [f"{tmp_path}/cli/bin", f"{tmp_path}/cli/node_modules/.bin"]
    assert "/usr/bin" in entries and f"{tmp_path}/ours" not in entries


def test_hiding_around_what_is_needed(tmp_path: Path) -> None:
    for name in ("project/.venv/lib", "project/tasks/x", "project/arena", "runs"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "project" / "link").symlink_to("/usr")
    (tmp_path / "project" / "file").touch()
    hidden = [tmp_path / name for name in ("runs", "project", "project/arena", "runs/x", "gone")]
    (tmp_path / "runs" / "x").mkdir()
    found = around(hidden, [tmp_path / "project" / ".venv"])
    assert {path.relative_to(tmp_path).as_posix() for path in found} == {"project/tasks", "project/arena", "runs"}


def test_the_harness_itself_is_among_what_is_hidden() -> None:
    folders = own_folders()
    assert Path(visible.__file__).resolve().is_relative_to(folders[0])
    assert any(path == folders[0].parent for path in folders)
