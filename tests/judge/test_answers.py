"""What a worker may answer, field by field; whatever is outside is its candidate's failure."""

from __future__ import annotations

import signal

import msgspec
import pytest

from arena.judge.workers.answers import Overstep, bounded
from arena.judge.workers.worker import CandidateFailed, signal_name
from arena.processes import protocol
from arena.processes.protocol import Blame, Call, Done, Failed, FromWorker, Kernels, Profiled, Ready
from arena.results.portability import KernelUse
from arena.results.profile import KernelTime
from arena.results.verdict import Status
from tests.judge.fake_workers import connected_worker, framed

USE, TIME = KernelUse("k", 1), KernelTime("k", 1, 1.0)
WITHIN = [
    Ready("session+network"),
    Done(0.25),
    Failed(Blame.LOAD_ERROR, "x" * protocol.DETAIL_CHARACTERS),
    Kernels((KernelUse("k" * protocol.NAME_CHARACTERS, 255, 1 << 20, 0, 0, 1.0),) * protocol.MOST_KERNELS),
    Profiled((KernelTime("k", 3, 1e6, (1, 2, 3), (4, 5, 6)),) * protocol.MOST_KERNELS),
]
OUTSIDE: list[tuple[FromWorker, str]] = [
    (Ready("x" * 5000), "isolation has 5000 characters, at most 4000"),
    (Done(-1.0), "worker_s is -1.0"),
    (Done(1e300), "worker_s is 1e[+]300"),
    (Done(float("nan")), "worker_s is nan"),
    (Done(float("inf")), "worker_s is inf"),
    (Failed(Blame.LOAD_ERROR, "x" * (6 << 20)), "detail has 6291456 characters, at most 4000"),
    (Kernels((USE,) * 129), "kernels has 129 entries, at most 128"),
    (Kernels((KernelUse("k" * 301, 1),)), "kernel has 301"),
    (Kernels((KernelUse("k", -1),)), "registers is -1"),
    (Kernels((KernelUse("k", 10**4000),)), "registers is a number of many digits"),
    (Kernels((KernelUse("k", 1, occupancy=1.5),)), "occupancy is 1.5"),
    (Kernels((KernelUse("k", 1, 1 << 50),)), "shared_bytes"),
    (Kernels((KernelUse("k", 1, 0, 1 << 50),)), "spill_bytes"),
    (Kernels((KernelUse("k", 1, 0, 0, 1 << 50),)), "scalar_registers"),
    (Profiled((TIME,) * 129), "kernels has 129"),
    (Profiled((KernelTime("k" * 301, 1, 1.0),)), "kernel has 301"),
    (Profiled((KernelTime("k", -1, 1.0),)), "calls is -1"),
    (Profiled((KernelTime("k", 1, -1.0),)), "device_us is -1"),
    (Profiled((KernelTime("k", 1, 1.0, (1,) * 4),)), "grid has 4"),
    (Profiled((KernelTime("k", 1, 1.0, (), (1 << 50,)),)), "block is"),
]


@pytest.mark.parametrize("answer", WITHIN, ids=lambda answer: type(answer).__name__)
def test_answers_within_their_bounds_stay_as_they_are(answer: FromWorker) -> None:
    assert bounded(answer) == answer
    assert len(msgspec.json.encode(answer)) < protocol.ANSWER_BYTES


@pytest.mark.parametrize(("answer", "says"), OUTSIDE, ids=[says for _, says in OUTSIDE])
def test_answers_outside_of_their_bounds(answer: FromWorker, says: str) -> None:
    with pytest.raises(Overstep, match=says):
        bounded(answer)


@pytest.mark.parametrize(
    "answer",
    [
        Failed(Blame.LAUNCH_ERROR, "\x1b[2J"),
        Kernels((KernelUse("\x1b[2J", 1),)),
        Profiled((KernelTime("\x1b[2J", 1, 1.0),)),
        Ready("\x1b[2J"),
    ],
    ids=lambda answer: type(answer).__name__,
)
def test_no_text_keeps_an_escape_sequence(answer: FromWorker) -> None:
    assert b"u001b" not in msgspec.json.encode(bounded(answer))


def test_an_overstep_is_a_crash_that_says_what_was_sent() -> None:
    with connected_worker() as (worker, theirs):
        theirs.sendall(framed(msgspec.json.encode(Kernels((USE,) * 129))))
        with pytest.raises(CandidateFailed, match="kernels has 129 entries, at most 128 are taken") as failed:
            worker.kernels(5.0)
    assert failed.value.status is Status.CRASH


def test_one_answer_too_many_is_a_crash() -> None:
    with connected_worker() as (worker, theirs):
        theirs.sendall(framed(b'{"type":"Done"}') * 2)
        with pytest.raises(CandidateFailed, match="an answer too many"):
            worker.ask(Call(0), 5.0)


def test_every_signal_has_a_name() -> None:
    """One that ends a worker is named in the verdict: 35 is no member of Python's enum."""
    assert signal_name(signal.SIGSEGV) == "SIGSEGV" and signal_name(35) == "signal 35"
    assert all(signal_name(number) for number in range(1, signal.NSIG))
