"""What is drawn for a case, and what is left out for who runs nothing."""

from __future__ import annotations

import random
import secrets
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from arena.judge.correctness import buffers, inputs
from arena.judge.correctness.inputs import draw_inputs, draw_secret, secret_draws, secret_generator
from arena.judge.correctness.stage import CorrectnessCheck
from arena.judge.correctness.verify import GOOD
from arena.judge.performance.stage import PerformanceCheck
from arena.judge.performance.timed_program import PassPlan, TimedProgram
from arena.judge.performance.waits import LONG
from arena.platforms.cpu.platform import CpuPlatform
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import FLOATING, Arguments, Task, arguments
from arena.task.numerics.fills import is_custom
from arena.task.numerics.reference import Reference


def test_indices_are_drawn_and_data_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    task = load_task(TASKS / "triton2triton/moe/expert_kernel")
    worked_out = arguments(task, task.seen[0])
    reference, generator = Reference(task.reference_path), secret_generator("cpu")
    everything = draw_inputs(worked_out, reference, 1, generator)
    assert set(everything) == {tensor.name for tensor in worked_out.inputs}
    needed = draw_inputs(worked_out, reference, 1, generator, data=False)
    left_out = {tensor.name for tensor in worked_out.inputs} - set(needed)
    assert left_out == {tensor.name for tensor in worked_out.inputs if tensor.dtype in FLOATING}
    monkeypatch.setattr(inputs, "_MOST_INDICES", 0)
    fewer = draw_inputs(worked_out, reference, 1, generator, data=False)
    assert set(fewer) < set(needed), "large tensors of integers that may be 0 are data, too"


@pytest.mark.parametrize(
    ("task", "most", "drawn"),
    [
        ("attention/correct_attn_cp_out", 1 << 30, False),
        ("linear_attention/fla_cumsum_vector", 1 << 30, True),
        ("linear_attention/fla_cumsum_vector", 1, False),
    ],
    ids=["no indices", "indices beside data", "more than the host may hold"],
)
def test_a_task_is_asked_for_its_own_inputs_only_for_indices(
    monkeypatch: pytest.MonkeyPatch, task: str, most: int, drawn: bool
) -> None:
    monkeypatch.setattr(inputs, "_MOST_BYTES_AT_ONCE", most)
    found = load_task(TASKS / "triton2triton" / task)
    worked_out, reference = arguments(found, found.seen[0]), Reference(found.reference_path)
    custom = {tensor.name for tensor in worked_out.inputs if is_custom(tensor.spec.fill)}
    needed = draw_inputs(worked_out, reference, 1, secret_generator("cpu"), data=False)
    assert custom and (custom <= set(needed)) == drawn
    assert drawn or not custom & set(needed)


@dataclass
class Given:
    """Entropy that is known, and how much was asked for."""

    data: bytes = secrets.token_bytes(2496)
    asked: list[int] = field(default_factory=list)

    def __call__(self, count: int) -> bytes:
        self.asked.append(count)
        return self.data[:count]


def drawn(generator: torch.Generator, count: int = 2000) -> torch.Tensor:
    return torch.randint(0, 1 << 31, (count,), generator=generator)


def test_a_seed_alone_has_32_bits_on_the_cpu() -> None:
    """Why the state is set and not the seed."""
    low, high = (torch.Generator().manual_seed(5 + (bits << 32)) for bits in (0, 7))
    assert torch.equal(drawn(low), drawn(high))


def test_the_state_is_the_twisters_as_a_whole() -> None:
    """NumPy's twister draws the same from the same 624 words."""
    given = Given()
    twister = np.random.MT19937()
    state = twister.state
    state["state"] = {"key": np.frombuffer(given.data, dtype=np.uint32), "pos": 624}
    twister.state = state
    wanted = torch.from_numpy((twister.random_raw(2000) & 0x7FFFFFFF).astype(np.int32))
    found = torch.empty(2000, dtype=torch.int32).random_(generator=secret_generator("cpu", given))
    assert torch.equal(found, wanted)
    assert given.asked == [2496]


@pytest.mark.parametrize("byte", [3, 4, 7, 1247, 2492, 2495])
def test_every_part_of_the_secret_counts(byte: int) -> None:
    """Also what a seed of 32 bits leaves out."""
    one, other = Given(), Given()
    other.data = one.data[:byte] + bytes([one.data[byte] ^ 0x80]) + one.data[byte + 1 :]
    assert not torch.equal(drawn(secret_generator("cpu", one)), drawn(secret_generator("cpu", other)))


def test_a_state_worked_out_from_one_draw_says_nothing_of_the_next(task: Task, case: Arguments) -> None:
    """A generator that went on is foretold from its state, which 624 of its numbers tell; what is drawn next is not."""
    reference, made = Reference(task.reference_path), secret_generator("cpu")
    draw_inputs(case, reference, 1, made)
    foretold = torch.Generator().set_state(made.get_state())
    wanted = draw_inputs(case, reference, 1, foretold)["x"]
    assert torch.equal(draw_inputs(case, reference, 1, made)["x"], wanted)
    assert not torch.equal(draw_secret(case, reference, 1, "cpu")["x"], wanted)


def test_no_two_draws_share_a_stream(task: Task, case: Arguments) -> None:
    reference = Reference(task.reference_path)
    draws = [draw_secret(case, reference, 1, "cpu")["x"].flatten()[:4] for _ in range(50)]
    assert len({tuple(values.tolist()) for values in draws}) == 50


def test_every_draw_has_a_state_of_its_own(case: Arguments, task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds of the correctness stage, warm-ups, rounds, canaries: each takes fresh bits, and nothing is kept."""
    reference = Reference(task.reference_path)
    made: list[torch.Generator] = []

    def counted(*given: Any) -> torch.Generator:
        made.append(secret_generator(*given))
        return made[-1]

    monkeypatch.setattr(inputs, "secret_generator", counted)
    monkeypatch.setattr(buffers, "secret_generator", counted)
    platform = CpuPlatform()
    worker: Any = SimpleNamespace(ask=lambda *_: None, stop=lambda: None, release=lambda *_: None)
    worker_program: Any = SimpleNamespace(ready=lambda _: worker, worker=worker)
    check = CorrectnessCheck(platform, reference, 3, 1.0)
    monkeypatch.setattr(CorrectnessCheck, "_once", lambda check, worker, sets, *_: sets.scatter_canaries() or GOOD)
    assert check.run(worker_program, case).status is GOOD.status
    assert len(made) == 3 + 4, "three seeds, and canaries for these and for the call that is repeated"
    TimedProgram(worker_program, platform, 1.0).bind(case, reference, {LONG: (0,)})
    timer: Any = SimpleNamespace(platform=platform)
    rounds = PerformanceCheck(timer, reference, 1.0)
    for _ in range(3):
        rounds._draw(case, PassPlan(1, 3))
    assert len(made) == 7 + 2 + 3, "a warm-up and its canaries, and the draws of three rounds"
    assert len({made_one.get_state().numpy().tobytes() for made_one in made}) == len(made)


def test_the_order_of_passes_comes_from_no_state() -> None:
    """Nor does the secret sample of calls, which such a state would tell as well."""
    nothing: Any = None
    source = PerformanceCheck(nothing, nothing, 1.0)._random
    assert isinstance(source, random.SystemRandom)
    with pytest.raises(NotImplementedError):
        source.getstate()


def test_a_fresh_state_costs_next_to_nothing() -> None:
    secret_generator("cpu")
    best = min(_seconds() for _ in range(50))
    assert best < 0.2e-3, f"{best * 1e3:.3f} ms"


def _seconds() -> float:
    started = time.thread_time()
    secret_generator("cpu")
    return time.thread_time() - started


@pytest.mark.gpu
def test_a_secret_state_on_a_gpu() -> None:
    """Every byte of key and offset counts, and the generator takes them."""
    one = Given(bytes(range(16)))
    base = torch.rand(64, device="cuda", generator=secret_generator("cuda", one))
    assert torch.equal(base, torch.rand(64, device="cuda", generator=secret_generator("cuda", one)))
    for byte in range(16):
        other = Given(one.data[:byte] + bytes([one.data[byte] ^ 0x80]) + one.data[byte + 1 :])
        assert not torch.equal(base, torch.rand(64, device="cuda", generator=secret_generator("cuda", other))), byte
    states = {secret_generator("cuda").get_state().numpy().tobytes() for _ in range(100)}
    assert len(states) == 100 and {len(state) for state in states} == {16}


@pytest.mark.parametrize("most", [1, 2, 5])
def test_inputs_that_a_task_builds_are_asked_for_a_few_sets_at_a_time(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    task = load_task(TASKS / "hip2hip/modules/cross_entropy_label_smoothing")
    worked_out = arguments(task, task.seen[0])
    reference, generator = Reference(task.reference_path), secret_generator("cpu")
    asked: list[int] = []
    build = Reference.make_inputs

    def counted(self: Reference, case: Arguments, chance: torch.Generator, count: int) -> dict[str, torch.Tensor]:
        asked.append(count)
        return build(self, case, chance, count)

    monkeypatch.setattr(Reference, "make_inputs", counted)
    a_set = sum(values.nbytes for values in draw_inputs(worked_out, reference, 1, generator).values())
    asked.clear()
    monkeypatch.setattr(inputs, "_MOST_BYTES_AT_ONCE", most * a_set)
    drawn_sets = draw_inputs(worked_out, reference, 5, generator)
    assert max(asked) == most and sum(asked) == 5
    assert {values.shape[0] for values in drawn_sets.values()} == {5}
    assert len({tuple(row.flatten().tolist()) for row in drawn_sets["logits"]}) == 5, "each set is drawn, none twice"


def test_draws_are_secret_but_for_those_of_a_given_source() -> None:
    """`arena tasks check`, where nobody guesses, has the same verdict again."""
    assert secret_draws(2) != secret_draws(2)
    assert secret_draws(4, random.Random("a task")) == secret_draws(4, random.Random("a task"))
    assert secret_draws(1, random.Random("a task")) != secret_draws(1, random.Random("another"))
