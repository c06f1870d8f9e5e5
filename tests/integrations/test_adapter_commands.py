"""The commands of adapters where their packages are missing, or an option is wrong."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from arena.cli.app import app
from arena.errors import UsageError


@pytest.mark.parametrize(
    ("command", "package", "extra"),
    [("mcp", "mcp", "mcp"), ("openreward", "openreward", "openreward"), ("export", "pyarrow", "export")],
)
def test_a_missing_package_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, command: str, package: str, extra: str
) -> None:
    for name in [name for name in sys.modules if name.startswith("arena.integrations.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    arguments = ["parquet", ".", "--out", "."] if command == "export" else ["--server", "/nothing.sock"]
    done = CliRunner().invoke(app, [command, *arguments])
    assert isinstance(done.exception, UsageError)
    assert f"pip install 'unseen-arena[{extra}]'" in str(done.exception)


def test_a_reward_that_there_is_not() -> None:
    done = CliRunner().invoke(app, ["openreward", "--server", "/nothing.sock", "--reward", "sparse"])
    assert isinstance(done.exception, UsageError) and "expected one of dense, bounded" in str(done.exception)
