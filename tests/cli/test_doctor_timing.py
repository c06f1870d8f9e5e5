"""`arena doctor --timing` as it is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console
from typer.testing import CliRunner

from arena.checks.doctor import timing
from arena.checks.doctor.timing import KernelTiming, TimingErrors
from arena.cli.app import app
from arena.cli.doctor_output import timing_table, timing_verdict
from tests.fakes import HERE

ANCHOR = KernelTiming("spin", 1, "the device's clock", 0.01, 0.01, 0.0099, 0.0101, anchor=True)
GOOD = replace(ANCHOR, count=2, expected_ms=0.02, measured_ms=0.0201, low_ms=0.02, high_ms=0.0202, anchor=False)
FOUND = TimingErrors(HERE, (ANCHOR, GOOD), ("the device is at 90 °C: let it cool",), 0.01)


def test_what_is_shown() -> None:
    console = Console(width=150, record=True)
    console.print(timing_table(FOUND))
    text = console.export_text()
    assert "anchor" in text and "+0.50%" in text and "0.0201" in text
    assert timing_verdict(FOUND).startswith("worst error 0.50%, within the 1% allowed, over 1 cases of 20 µs and more")
    assert "emulation" in timing_verdict(FOUND)
    assert "beyond" in timing_verdict(replace(FOUND, band=0.001))
    assert "the timing error is unknown" in timing_verdict(replace(FOUND, known=(ANCHOR,)))


@pytest.mark.parametrize(("band", "code"), [(0.01, 0), (0.001, 1)])
def test_the_exit_code_is_the_answer(monkeypatch: pytest.MonkeyPatch, band: float, code: int) -> None:
    monkeypatch.setattr(timing, "check_timing", lambda platform, began: replace(FOUND, band=band))
    shown = CliRunner().invoke(app, ["doctor", "--timing"])
    assert shown.exit_code == code
    assert "warning: the device is at 90 °C" in shown.output
