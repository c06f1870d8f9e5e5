"""Our adapters, and the documented list of tasks that have none."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from arena.api.tasks import load_task
from arena.integrations.yardstick.adapters import find_adapters
from arena.integrations.yardstick.engines import PACKAGES
from arena.task.corpus.task_folder import TASKS

ROOT = Path(__file__).resolve().parents[3]


def test_every_adapter_defines_its_task_s_entry_and_imports_from_its_engine_only() -> None:
    adapters = find_adapters()
    assert len(adapters) > 10
    for adapter in adapters:
        text = adapter.path.read_text(encoding="utf-8")
        assert f"def {load_task(adapter.task).entry}(" in text, adapter.path
        imported = {name for name in PACKAGES if f"from {PACKAGES[name]}." in text}
        assert imported == {adapter.engine}, adapter.path
        assert ast.get_docstring(ast.parse(text)), adapter.path


def test_every_task_of_a_serving_engine_has_an_adapter_or_a_documented_reason() -> None:
    reasons = (ROOT / "integrations/yardsticks/README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([a-z_0-9]+/[a-z_0-9]+)` \|", reasons, re.MULTILINE))
    have = {adapter.task.removeprefix("triton2triton/") for adapter in find_adapters()}
    serving = {
        f"{path.parent.parent.name}/{path.parent.name}"
        for path in (TASKS / "triton2triton").glob("*/*/task.yaml")
        if path.parent.parent.name != "fundamentals"
    }
    assert have | listed == serving and not have & listed
    assert f"{len(have)} of the {len(serving)} tasks" in (ROOT / "docs/evaluate/import.md").read_text(encoding="utf-8")
