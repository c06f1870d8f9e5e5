"""`--platform` and `--devices`: what is evaluated on, and that a judge sees no other GPU."""

from __future__ import annotations

import os

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


VARIABLES = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


def use(monkeypatch: pytest.MonkeyPatch, hip: str | None, **variables: str) -> None:
    """PyTorch of one kind, and no variables but these."""
    monkeypatch.setattr("torch.version.hip", hip)
    for name in VARIABLES:
        monkeypatch.setenv(name, "")  # for what is set in a test to be undone
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(("hip", "variable"), [(None, "CUDA_VISIBLE_DEVICES"), ("7.0", "HIP_VISIBLE_DEVICES")])
def test_a_judge_sees_one_of_the_visible_devices(
    monkeypatch: pytest.MonkeyPatch, hip: str | None, variable: str
) -> None:
    use(monkeypatch, hip, **{variable: "5,7"})
    platforms.show_only(1)
    assert os.environ[variable] == "7"
    with pytest.raises(UsageError, match="no device 1"):
        platforms.show_only(1)
    monkeypatch.setenv(variable, "")
    platforms.show_only(2)
    assert os.environ[variable] == "2"


@pytest.mark.parametrize(
    ("given", "device", "shown"),
    [
        ({"ROCR_VISIBLE_DEVICES": "2,3"}, 1, "1"),
        ({"ROCR_VISIBLE_DEVICES": "GPU-4b2c,GPU-9d8e"}, 1, "1"),
        ({"ROCR_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "1,0"}, 0, "1"),
        ({"ROCR_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "GPU-9d8e"}, 0, "GPU-9d8e"),
        ({"CUDA_VISIBLE_DEVICES": "5,7"}, 1, "7"),
        ({"HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "5,7"}, 0, "1"),
    ],
)
def test_hip_counts_what_rocr_leaves(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], device: int, shown: str
) -> None:
    """ROCr hides first, and HIP selects among the rest; CUDA's variable counts where HIP's is not set."""
    use(monkeypatch, "7.0", **given)
    platforms.show_only(device)
    assert os.environ["HIP_VISIBLE_DEVICES"] == shown
    assert os.environ.get("ROCR_VISIBLE_DEVICES") == given.get("ROCR_VISIBLE_DEVICES")


def test_a_device_that_rocr_hides_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, "7.0", ROCR_VISIBLE_DEVICES="2,3")
    with pytest.raises(UsageError, match="no device 2: ROCR_VISIBLE_DEVICES shows 2"):
        platforms.show_only(2)
    use(monkeypatch, "7.0", ROCR_VISIBLE_DEVICES="2,3", HIP_VISIBLE_DEVICES="3")
    with pytest.raises(UsageError, match="ROCR_VISIBLE_DEVICES leaves 2"):
        platforms.show_only(0)


def test_rocr_means_nothing_to_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, None, ROCR_VISIBLE_DEVICES="0")
    platforms.show_only(3)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "3"
