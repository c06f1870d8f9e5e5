"""`--platform` and `--devices`: what is evaluated on, and that a judge sees no other GPU."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from arena import platforms
from arena.cli.app import app
from arena.cli.devices import chosen_devices
from arena.errors import UsageError


def test_numbers_as_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen_devices("") == (None,)
    assert chosen_devices("2,0") == (2, 0)
    monkeypatch.setattr(platforms, "device_count", lambda: 3)
    assert chosen_devices("all") == (0, 1, 2)
    monkeypatch.setattr(platforms, "device_count", lambda: 0)
    assert chosen_devices("all") == (None,)


@pytest.mark.parametrize("text", ["one", "0,0", "-1", "0,,1"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--devices"):
        chosen_devices(text)


@pytest.mark.parametrize(
    "typed",
    [
        "run quickstart",
        "evaluate rms_norm kernel.py",
        "serve rms_norm",
        "tasks check",
        "heldout sample --seed 1 --out fresh",
        "agents try codex",
        "doctor --quick",
    ],
)
def test_every_command_refuses_an_unknown_platform(typed: str) -> None:
    done = CliRunner().invoke(app, [*typed.split(), "--platform", "gpu"])
    assert isinstance(done.exception, UsageError) and done.exception.exit_code == 2
    assert str(done.exception) == "unknown platform 'gpu'; expected one of: auto, cpu, cuda, rocm"


@pytest.mark.parametrize(("hip", "variable"), [(None, "CUDA_VISIBLE_DEVICES"), ("7.0", "HIP_VISIBLE_DEVICES")])
def test_a_judge_sees_one_of_the_visible_devices(
    monkeypatch: pytest.MonkeyPatch, hip: str | None, variable: str
) -> None:
    import os

    monkeypatch.setattr("torch.version.hip", hip)
    monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(variable, "5,7")
    platforms.show_only(1)
    assert os.environ[variable] == "7"
    with pytest.raises(UsageError, match="no device 1"):
        platforms.show_only(1)
    monkeypatch.setenv(variable, "")
    platforms.show_only(2)
    assert os.environ[variable] == "2"
