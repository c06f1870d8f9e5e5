"""The build cache: entries appear whole or not at all, whoever is first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from arena.platforms.toolchains import hip_build
from arena.platforms.toolchains.base import BuildFailed, Built
from arena.platforms.toolchains.build_cache import STAGING, BuildCache, content_key
from arena.platforms.toolchains.hip_build import Recipe, build_cached

_COPY = ("/bin/sh", "-c", 'cp input "$2"; echo done', "sh")


def test_keys_differ_when_anything_does() -> None:
    parts = [
        {"a": "b"},
        {"a": "c"},
        {"b": "a"},
        {"a": "b", "c": ""},
        {"ab": ""},
        {"": "ab"},
    ]
    assert len({content_key(part) for part in parts}) == len(parts)
    assert content_key({"x": "1", "y": "2"}) == content_key({"y": "2", "x": "1"})


def test_an_entry_is_found_after_it_is_published(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "deep" / "root")
    assert cache.find("0123") is None
    with cache.staging() as folder:
        (folder / "result").mkdir()
        (folder / "result" / "text").write_text("hello")
        entry = cache.publish(folder / "result", "0123")
    assert cache.find("0123") == entry
    assert (entry / "text").read_text() == "hello"
    assert list((cache.root / STAGING).iterdir()) == []


def test_the_first_to_publish_wins(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    for text in ("first", "second"):
        with cache.staging() as folder:
            (folder / "result").mkdir()
            (folder / "result" / "text").write_text(text)
            entry = cache.publish(folder / "result", "abcd")
    assert (entry / "text").read_text() == "first"


def test_staging_is_removed_when_the_build_raises(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    with pytest.raises(RuntimeError), cache.staging() as folder:
        (folder / "half").write_text("x")
        raise RuntimeError
    assert list((tmp_path / STAGING).iterdir()) == []


def recipe(text: str, **identity: str) -> Recipe:
    return Recipe({"input": text}, _COPY, "output", identity)


def test_a_build_is_made_once(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    first = build_cached(recipe("hello"), cache, timeout_s=60)
    again = build_cached(recipe("hello"), cache, timeout_s=60)
    other = build_cached(recipe("hello", compiler="newer"), cache, timeout_s=60)
    assert isinstance(first, Built) and isinstance(again, Built) and isinstance(other, Built)
    assert [first.cached, again.cached, other.cached] == [False, True, False]
    assert first.library == again.library
    assert again.library.read_text() == "hello"
    assert again.log == first.log == "done\n"


def test_a_failure_is_a_value_and_is_not_kept(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    broken = Recipe({}, ("/bin/sh", "-c", "echo wrong; exit 1"), "output")
    for _ in range(2):
        result = build_cached(broken, cache, timeout_s=60)
        assert isinstance(result, BuildFailed)
        assert result.log == "wrong\n"
    silent = Recipe({}, ("/bin/true",), "output")
    assert isinstance(build_cached(silent, cache, timeout_s=60), BuildFailed)


def test_a_build_that_is_too_large_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hip_build, "KEPT_BYTES", 2 << 20)
    cache = BuildCache(tmp_path)
    large = Recipe({}, ("/bin/sh", "-c", 'head -c 3145728 /dev/zero > "$2"', "sh"), "output")
    refused = build_cached(large, cache, timeout_s=60)
    assert isinstance(refused, BuildFailed) and refused.log == "the compiled kernel has 3 MiB, at most 2 are taken"
    assert cache.find(large.key) is None


def test_the_compiler_sees_only_our_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", "/somewhere")
    monkeypatch.setenv("HOME", "/root-of-someone")
    shown = Recipe({}, ("/bin/sh", "-c", 'env > "$2"', "sh"), "output")
    built = build_cached(shown, BuildCache(tmp_path), timeout_s=60)
    assert isinstance(built, Built)
    text = built.library.read_text()
    assert "CPLUS_INCLUDE_PATH" not in text
    assert "/root-of-someone" not in text
    assert "CCACHE_DISABLE=1" in text


def test_processes_that_build_the_same_agree(tmp_path: Path) -> None:
    script = f"""
from pathlib import Path
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_build import Recipe, build_cached
slow = ("/bin/sh", "-c", 'sleep 0.3; cp input "$2"', "sh")
cache = BuildCache(Path({str(tmp_path)!r}))
print(build_cached(Recipe({{"input": "same"}}, slow, "output"), cache, timeout_s=60).library)
"""
    running = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    answers = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0, 0], answers
    paths = {out.strip() for out, _ in answers}
    assert len(paths) == 1
    assert Path(paths.pop()).read_text() == "same"
    assert list((tmp_path / STAGING).iterdir()) == []
