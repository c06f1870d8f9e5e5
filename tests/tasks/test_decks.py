"""The corpora `kernelbench_hard` and `kernelbench_mini`: what their tasks declare, and that experts are right."""

from __future__ import annotations

from functools import cache
from pathlib import Path

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

HARD, MINI = (TASKS.parent / "corpora" / name for name in ("kernelbench_hard", "kernelbench_mini"))
FAULTS = TASKS.parent / "tests/shipped_faults"
STYLES = TASKS.parent / "tests/honest_styles"
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
    "dequant_gemv": (
        "M N K group_size",
        "x",
        "w_q_gate scales_gate zeros_gate w_q_up scales_up zeros_up",
    ),
    "flash_attention": ("B H S D", "q k v", ""),
    "segmented_decay_scan": ("B T D", "x decay resets", ""),
    "topp_mask": ("B V P", "logits", ""),
}
"""arguments of a published constructor and of `forward`, and the entries of the `state_dict`"""
PUBLISHED = {
    HARD: {"fp8_gemm": 4, "kda": 4, "moe_swiglu": 3, "paged_attention": 5, "topk": 5, "w4a16_gemm": 5},
    MINI: {"dequant_gemv": 4, "flash_attention": 5, "segmented_decay_scan": 4, "topp_mask": 4},
}
"""how many sizes are published of each problem"""
SMALL = 3e6
"""operations plus bytes of a case that the CPU platform runs"""


@cache
def decks() -> dict[str, Task]:
    return {task.name: task for corpus in PUBLISHED for task in load_corpus(corpus)}


@pytest.mark.parametrize("corpus", PUBLISHED, ids=lambda corpus: corpus.name)
def test_a_corpus_has_a_task_for_each_problem(corpus: Path) -> None:
    assert sorted(task.name for task in load_corpus(corpus)) == sorted(PUBLISHED[corpus])


def test_tasks_are_at_level_strict() -> None:
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
    assert sum(case.timed and not case.regime for case in task.seen) == {**PUBLISHED[HARD], **PUBLISHED[MINI]}[name]
    for cases, least in ((task.seen, 3), (task.heldout, 4)):
        worked_out = [arguments(task, case) for case in cases if not case.timed]
        assert sum(one.flops + max(one.num_bytes, one.held_bytes) <= SMALL for one in worked_out) >= least
    assert len(task.heldout) >= 8
    assert len({case.kind for case in task.heldout}) >= 5


@pytest.mark.parametrize("name", PUBLISHED[MINI])
def test_three_faults_and_a_module_are_kept(name: str) -> None:
    assert len(list((FAULTS / name).glob("*.py"))) >= 3
    assert any("class Model(" in path.read_text(encoding="utf-8") for path in (STYLES / name).glob("*.py"))


@pytest.mark.parametrize("name", INTERFACES)
def test_an_expert_is_right(name: str, cpu_judge: JudgeClient) -> None:
    task = decks()[name]
    assert task.expert is not None
    options = Options(effort=Effort.CORRECTNESS, seeds=1, heldout=False, case=("seen-01",))
    assert cpu_judge.evaluate(task.path, task.expert, options).status is Status.PASSED
