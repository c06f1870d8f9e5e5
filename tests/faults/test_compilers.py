"""Sources that are bombs: the compiler is ended by a limit, which is the candidate's failure and nobody else's."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.judge.compile import stage as building
from arena.judge.process.client import JudgeClient
from arena.judge.workers.worker import CandidateFailed
from arena.platforms import platform
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS, load_task
from tests.faults.runs import SOFTMAX, Faulty, check, start

DEEP = "template<int N> struct Deep { static constexpr int v = Deep<N + 1>::v; };\nint deep = Deep<0>::v;\n"
WIDE = """\
template<int N, int P> struct Wide { static constexpr long v = Wide<N - 1, 2 * P>::v + Wide<N - 1, 2 * P + 1>::v; };
template<int P> struct Wide<0, P> { static constexpr long v = P; };
long wide = Wide<30, 0>::v;
"""
DOUBLING = "".join(f"#define B{i} B{i - 1} B{i - 1}\n" for i in range(1, 41))
MACROS = f"#define B0 1,\n{DOUBLING}int bomb[] = {{B40}};\n"


def build(tmp_path: Path, bomb: str) -> CandidateFailed:
    """What the compile stage makes of softmax with a bomb in front."""
    task = load_task(TASKS / SOFTMAX)
    candidate = tmp_path / "kernel.hip"
    candidate.write_text(bomb + start(SOFTMAX), encoding="utf-8")
    with pytest.raises(CandidateFailed) as caught:
        building.build_program(task, candidate, task.seen[:1], platform("cpu").facts())
    return caught.value


def test_template_recursion(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    check(Faulty(tmp_path, SOFTMAX, DEEP + start(SOFTMAX)).run(cpu_judge), Status.COMPILE_ERROR, "depth")


@pytest.mark.slow
def test_templates_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "COMPILER_S", 3.0)
    assert build(tmp_path, WIDE).status is Status.TIMEOUT


@pytest.mark.slow
def test_macro_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "COMPILER_BYTES", 1 << 30)
    failure = build(tmp_path, MACROS)
    assert failure.status is Status.COMPILE_ERROR and "memory" in failure.detail
