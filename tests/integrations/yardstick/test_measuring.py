"""An engine's kernel goes through the judge, one row a case, and an unsupported case fails alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.api.tasks import load_task
from arena.errors import FileError
from arena.integrations.yardstick.adapters import find_adapters
from arena.integrations.yardstick.engines import find_engine
from arena.integrations.yardstick.measuring import Yardstick, collect, measure
from arena.integrations.yardstick.sources import Sources
from arena.integrations.yardstick.table import COLUMNS, MEAN, has_rows, read_table, replace_rows
from arena.judge.process.client import JudgeClient
from arena.results.effort import Effort
from arena.runs.service.judge_pool import JudgePool
from arena.task.options import Options
from tests.integrations.yardstick.engine_files import ADAPTER, write_adapter, write_engine

OPTIONS = Options(heldout=False, effort=Effort.CORRECTNESS, seeds=1)


@pytest.fixture
def judges(cpu_judge: JudgeClient) -> JudgePool:
    return JudgePool([cpu_judge])


def yardstick(tmp_path: Path, adapter: str = ADAPTER, root: Path | None = None) -> Yardstick:
    write_adapter(tmp_path / "adapters", adapter)
    (found,) = find_adapters(["rms_norm"], folder=tmp_path / "adapters")
    engine = find_engine("vllm", [root or write_engine(tmp_path / "engine")])
    assert engine is not None
    return Yardstick(found, engine, found.candidate(Sources(engine)), load_task(found.task))


def test_a_kernel_of_an_engine_passes_and_its_rows_say_where_it_is_from(tmp_path: Path, judges: JudgePool) -> None:
    one = yardstick(tmp_path)
    *rows, mean = measure(one, judges, OPTIONS, every_case=True)
    assert len(rows) >= 4 and {row["status"] for row in rows} == {"passed"}
    assert {row["files"] for row in rows} == {"vllm/kernels.py vllm/tools.py"}
    assert mean["case"] == MEAN and mean["shape"].startswith(f"{len(rows)} of ")
    assert {row["digest"] for row in (*rows, mean)} == {one.digest}


@pytest.mark.slow
def test_a_case_that_an_engine_does_not_support_fails_alone(tmp_path: Path, judges: JudgePool) -> None:
    limited = ADAPTER.replace("    engine_norm(", "    assert x.shape[1] != 1152, 'too odd'\n    engine_norm(")
    *rows, mean = measure(yardstick(tmp_path, limited), judges, OPTIONS, every_case=True)
    failed = [row for row in rows if row["status"] != "passed"]
    assert len(failed) == 1 and "N=1152" in failed[0]["shape"] and "too odd" in failed[0]["detail"]
    assert mean["status"] == failed[0]["status"] == "launch_error"


def test_collected_files_make_the_same_candidate(tmp_path: Path) -> None:
    one = yardstick(tmp_path)
    copied = set(collect([one], tmp_path / "small"))
    assert {path.name for path in copied} == {"kernels.py", "tools.py", "triton.py"}
    again = yardstick(tmp_path, root=tmp_path / "small")
    assert again.digest == one.digest and again.engine.version == one.engine.version


def test_a_table_is_read_back_and_rows_are_replaced_by_task_engine_and_device(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "table.csv"
    row = dict.fromkeys(COLUMNS, "") | {"task": "a", "engine": "vllm", "device": "d", "case": "1"}
    rows = replace_rows(path, [], [row, row | {"case": "2"}])
    rows = replace_rows(path, rows, [row | {"case": "3"}])
    rows = replace_rows(path, rows, [row | {"case": "4", "device": "other"}])
    assert [one["case"] for one in read_table(path)] == ["3", "4"] == [one["case"] for one in rows]
    assert has_rows(rows, case="3", device="d") and not has_rows(rows, case="3", device="other")
    path.write_text("another,table\n", encoding="utf-8")
    with pytest.raises(FileError, match="expected the columns task, engine"):
        read_table(path)
