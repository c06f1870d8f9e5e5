"""`arena yardstick`: it names what is missing, copies what is needed, and repeats nothing."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

from arena.cli.app import app
from arena.errors import UsageError
from arena.integrations.yardstick import adapters
from arena.integrations.yardstick.table import MEAN, read_table
from tests.integrations.yardstick.engine_files import ADAPTER, write_adapter, write_engine


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small engine, which the one adapter of these tests takes its kernel from."""
    write_adapter(tmp_path / "adapters")
    found = partial(adapters.find_adapters, folder=tmp_path / "adapters")
    monkeypatch.setattr(adapters, "find_adapters", found)
    return write_engine(tmp_path / "engine")


def yardstick(*arguments: str | int | Path) -> Result:
    return CliRunner().invoke(app, ["yardstick", *map(str, arguments)])


def test_what_is_not_there_is_named(tmp_path: Path, engine: Path) -> None:
    assert "expected one of vllm, sglang" in str(yardstick("--engine", "tvm", "--source", engine).exception)
    missing = yardstick("--source", tmp_path / "adapters" / "vllm")
    assert isinstance(missing.exception, UsageError) and "give its checkout as --source" in str(missing.exception)
    write_adapter(tmp_path / "adapters", ADAPTER.replace("import rms_norm as", "import layer_norm as"))
    unknown = yardstick("--source", engine, "--candidates", tmp_path / "none")
    assert unknown.exit_code == 0 and "rms_norm vllm: no candidate: " in unknown.stderr
    assert "layer_norm" in unknown.stderr


@pytest.mark.slow
def test_collected_files_are_a_source_and_a_second_run_measures_nothing(tmp_path: Path, engine: Path) -> None:
    assert "3 files for 1 kernels" in yardstick("--source", engine, "--collect", tmp_path / "small").stdout
    table = tmp_path / "table.csv"
    command = ("--source", tmp_path / "small", "--platform", "cpu", "--effort", "correctness", "--out", table)
    first = yardstick(*command, "--every-case")
    assert first.exit_code == 0 and "triton2triton/normalization/rms_norm vllm" in first.stdout
    *rows, mean = read_table(table)
    assert {row["status"] for row in rows} == {"passed"} and mean["case"] == MEAN
    second = yardstick(*command)
    assert second.exit_code == 0 and second.stdout == "" and read_table(table) == [*rows, mean]


@pytest.mark.slow
def test_after_the_given_time_no_evaluation_begins(
    tmp_path: Path, engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passing = iter(range(0, 1000, 100))
    monkeypatch.setattr("arena.cli.yardstick.time", SimpleNamespace(monotonic=lambda: next(passing)))
    table = tmp_path / "table.csv"
    late = yardstick(
        "--source", engine, "--platform", "cpu", "--effort", "correctness", "--seconds", 50, "--out", table
    )
    assert late.exit_code == 0 and "1 kernels are left: run the same command again" in late.stderr
    assert not table.exists()
