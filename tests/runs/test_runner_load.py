"""The runner leaves the processors to judges and compilers, also where it has many devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs.simulated import measured

RATE = 10.0
"""evaluations a second"""
SHARE = 0.5
"""of a core"""


@pytest.mark.slow
def test_a_run_on_64_devices_takes_less_than_half_of_a_core(tmp_path: Path) -> None:
    """Processor time alone is limited: other work on this machine changes the rate, but hardly the cost of each."""
    cost = measured(tmp_path, 64, 150, RATE)
    assert cost.record_bytes > 40_000
    assert cost.each_ms * RATE / 1e3 < SHARE, cost
