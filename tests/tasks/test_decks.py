"""The corpus `corpora/kernelbench_hard`: what its tasks declare, and that their experts are right."""

from __future__ import annotations

from functools import cache

import pytest

from arena.judge.process.client import JudgeClient
from arena.results.effort import Effort
from arena.results.verdict import Status
from arena.task.corpus.corpora import load_corpus
from arena.task.corpus.level import level_of
from arena.task.corpus.task_folder import TASKS
from arena.task.definition import Task, TaskType, arguments
from arena.task.options import Options
from arena.task.rules import RuleLevel

CORPUS = TASKS.parent / "corpora/kernelbench_hard"
COMMIT = "c7d92211851a18fdba173544f703436f4032b350"
INTERFACES = {
    "fp8_gemm": ("M N K", "x", "weight weight_scale"),
    "kda": ("B T H K V CHUNK_SIZE", "q k v g beta", ""),
    "moe_swiglu": ("T_total H I E K", "hidden_states expert_offsets", "W_gate W_up"),
    "paged_attention": (
        "batch num_heads num_kv_heads head_dim seq_len page_size",
        "query kv_cache block_table seq_lens",
        "",
    ),
    "topk": ("batch n k", "x", ""),
    "w4a16_gemm": ("M N K group_size", "x", "w_q scales zeros"),
}
"""arguments of a published constructor and of `forward`, and the entries of the `state_dict`"""
PUBLISHED = {"fp8_gemm": 4, "kda": 4, "moe_swiglu": 3, "paged_attention": 5, "topk": 5, "w4a16_gemm": 5}
SMALL = 3e6
"""operations plus bytes of a case that the CPU platform runs"""


@cache
def decks() -> dict[str, Task]:
    return {task.name: task for task in load_corpus(CORPUS)}


def test_the_corpus_has_six_tasks_at_level_strict() -> None:
    assert sorted(decks()) == sorted(INTERFACES)
    for task in decks().values():
        assert task.id == f"torch2triton/deck/{task.name}"
        assert task.task_type is TaskType.TORCH2TRITON and task.expert is not None
        assert level_of(task) is RuleLevel.STRICT
        assert COMMIT in task.source


@pytest.mark.parametrize("name", INTERFACES)
def test_the_interface_is_the_published_one(name: str) -> None:
    module = decks()[name].module
    assert module is not None
    init, forward, state = (text.split() for text in INTERFACES[name])
    assert [expression.text for expression in module.expressions] == init
    assert list(module.forward) == forward
    assert list(module.state) == state


@pytest.mark.parametrize("name", INTERFACES)
def test_a_task_has_the_published_sizes_and_enough_others(name: str) -> None:
    task = decks()[name]
    assert sum(case.timed for case in task.seen) == PUBLISHED[name]
    for cases, least in ((task.seen, 3), (task.heldout, 4)):
        worked_out = [arguments(task, case) for case in cases if not case.timed]
        assert sum(one.flops + max(one.num_bytes, one.held_bytes) <= SMALL for one in worked_out) >= least
    assert len(task.heldout) >= 8
    assert len({case.kind for case in task.heldout}) >= 5


@pytest.mark.parametrize("name", INTERFACES)
def test_an_expert_is_right(name: str, cpu_judge: JudgeClient) -> None:
    task = decks()[name]
    assert task.expert is not None
    options = Options(effort=Effort.CORRECTNESS, seeds=1, heldout=False, case=("seen-01",))
    assert cpu_judge.evaluate(task.path, task.expert, options).status is Status.PASSED
