"""The measurement of counters finds what is there, and nothing where there is nothing."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.processes.sandbox.channels import Place
from tests.processes.sandbox.counters import COUNTERS, Counter
from tests.processes.sandbox.exchange import make_place, measure
from tests.processes.sandbox.information import information

ROUNDS = 24


def _file(place: Place) -> Path:
    """Return a file that both workers may write without a sandbox."""
    return place.shown.parent / "counter"


def _leave(place: Place, number: int) -> None:
    _file(place).write_bytes(struct.pack("Q", number))


def _read(place: Place) -> int:
    return int(struct.unpack("Q", _file(place).read_bytes())[0])


IN_A_FILE = Counter(_leave, _read, "a file", 4, before=False)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path)


@pytest.mark.parametrize("alive", [False, True])
def test_a_counter_in_a_shared_file_gives_the_bits_that_were_left(place: Place, alive: bool) -> None:
    found = measure(IN_A_FILE, place, ROUNDS, alive=alive, confined=False)
    assert found.rounds == ROUNDS and found.passes
    assert 1.3 < found.bits <= 2.0 and found.rate > 0


@pytest.mark.parametrize("value", [lambda _: 7, lambda place: int.from_bytes(place.shown.name.encode()[:2])])
def test_a_counter_that_nothing_changes_gives_none(place: Place, value: Callable[[Place], float]) -> None:
    found = measure(IN_A_FILE._replace(read=value), place, 8, alive=False, confined=False)
    assert (found.bits, found.passes, found.rounds) == (0.0, False, 8)


def test_a_read_that_fails_is_named(place: Place) -> None:
    found = measure(IN_A_FILE._replace(leave=lambda *_: 0), place, 3, alive=True, confined=False)
    assert (found.rounds, found.bits, found.problem) == (0, 0.0, "FileNotFoundError")


@pytest.mark.parametrize(("levels", "cyclic"), [(4, False), (16, False), (16, True)])
def test_noise_alone_is_no_information(levels: int, cyclic: bool) -> None:
    generator = np.random.default_rng(7)
    left = list(map(int, generator.integers(levels, size=100)))
    noise = list(map(float, generator.uniform(0, levels, size=100)))
    assert not information(left, noise, levels, cyclic).passes
    assert information(left, noise, levels, cyclic).bits < 0.5


@pytest.mark.parametrize("cyclic", [False, True])
def test_information_is_found_in_noise(cyclic: bool) -> None:
    """A shift of half a number, as the start of a worker makes it, costs nothing where values go round."""
    generator = np.random.default_rng(7)
    left = generator.integers(16, size=200)
    read = (left + 0.5 + (0.4 if cyclic else 0) + generator.normal(0, 0.05, size=200)) % 16
    found = information(list(map(int, left)), list(map(float, read)), 16, cyclic)
    assert found.passes and found.bits > 3.0


def test_every_counter_names_its_interface_and_has_numbers() -> None:
    assert all(counter.by and counter.levels > 1 for counter in COUNTERS.values())
    assert len(COUNTERS) > 40
