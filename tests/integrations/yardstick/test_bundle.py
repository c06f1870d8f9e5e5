"""A candidate has what the adapter asks for, all that this needs, and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from arena.errors import FileError, UsageError
from arena.integrations.yardstick.bundle import CandidateText, bundle
from arena.integrations.yardstick.engines import Engine
from arena.integrations.yardstick.sources import Sources, free_names
from tests.integrations.yardstick.engine_files import ADAPTER, write_adapter, write_engine


def bundled(tmp_path: Path, adapter: str = ADAPTER, replacements: str = "") -> CandidateText:
    root = tmp_path / "engine"
    if not root.exists():
        write_engine(root)
    shared = tmp_path / "replacements.py"
    shared.write_text(replacements, encoding="utf-8")
    path = write_adapter(tmp_path / "adapters", adapter)
    return bundle(path, Sources(Engine("vllm", root, "1.0")), shared if replacements else None)


def names_of(text: str) -> list[str]:
    return [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


def test_definitions_come_from_several_files_each_after_what_it_needs_at_import(tmp_path: Path) -> None:
    text = bundled(tmp_path).text
    assert set(names_of(text)) == {
        *("current_platform", "rounded", "checked", "helper"),
        *("norm_kernel", "rms_norm", "rms_norm_of_engine"),
    }
    assert text.index("WIDTH = 8") < text.index("SMALL = 2 * WIDTH")
    assert "import triton.language as tl" in text and "nowhere" not in text


def test_a_candidate_imports_neither_the_engine_nor_its_platform(tmp_path: Path) -> None:
    imported = [node for node in ast.walk(ast.parse(bundled(tmp_path).text)) if isinstance(node, ast.Import)]
    assert {alias.name for node in imported for alias in node.names} == {"torch", "triton", "triton.language"} - {
        "torch"
    }
    assert not [node for node in ast.walk(ast.parse(bundled(tmp_path).text)) if isinstance(node, ast.ImportFrom)]


def test_host_functions_lose_annotations_and_wrappers_and_kernels_keep_theirs(tmp_path: Path) -> None:
    text = bundled(tmp_path).text
    assert "torch.compile" not in text and "Missing" not in text
    assert "BLOCK: tl.constexpr" in text and "@triton.jit" in text


def test_the_adapters_name_is_kept_and_the_engines_is_another(tmp_path: Path) -> None:
    tree = ast.parse(bundled(tmp_path).text)
    (entry,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "rms_norm"]
    assert "rms_norm_of_engine(x, weight, eps, y)" in ast.unparse(entry)


def test_files_are_those_that_definitions_come_from_and_those_that_pass_names_on(tmp_path: Path) -> None:
    candidate = bundled(tmp_path)
    assert [path.name for path in candidate.defining] == ["kernels.py", "tools.py"]
    assert [path.name for path in candidate.files] == ["kernels.py", "tools.py", "triton.py"]


def test_replacements_of_an_engine_serve_where_an_adapter_has_none(tmp_path: Path) -> None:
    adapter = ADAPTER.split("class current_platform")[0] + "def rms_norm(x, weight, eps, y):\n    engine_norm(x)\n"
    with pytest.raises(UsageError, match=r"platforms\.py binds no `current_platform`"):
        bundled(tmp_path, adapter)
    text = bundled(tmp_path, adapter, "class current_platform:\n    replaced = 7\n").text
    assert "replaced = 7" in text


def test_a_module_of_the_engine_is_no_definition(tmp_path: Path) -> None:
    (write_engine(tmp_path / "engine") / "vllm" / "kernels.py").write_text(
        "import vllm.tools as tools\n\n\ndef rms_norm(x):\n    return tools.rounded(x)\n", encoding="utf-8"
    )
    with pytest.raises(UsageError, match="uses the module `tools` of the engine: define `tools` in the adapter"):
        bundled(tmp_path)


def test_what_the_engine_no_longer_has_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="binds no `gone`: the engine has changed"):
        bundled(tmp_path, "from vllm.kernels import gone\n\n\ndef rms_norm():\n    gone()\n")
    with pytest.raises(FileError, match=r"no_module\.py: is missing in vllm 1\.0"):
        bundled(tmp_path, "from vllm.no_module import gone\n\n\ndef rms_norm():\n    gone()\n")


def test_two_definitions_of_one_name_keep_apart(tmp_path: Path) -> None:
    package = write_engine(tmp_path / "engine") / "vllm"
    (package / "tools.py").write_text(
        "def size():\n    return 1\n\n\ndef one():\n    return size()\n", encoding="utf-8"
    )
    (package / "kernels.py").write_text(
        "from vllm.tools import one\n\n\ndef size():\n    return 2\n\n\ndef both():\n    return one(), size()\n",
        encoding="utf-8",
    )
    text = bundled(tmp_path, "from vllm.kernels import both\n\n\ndef entry():\n    return both()\n").text
    space: dict[str, object] = {}
    exec(text, space)
    assert space["entry"]() == (1, 2)  # type: ignore[operator]


def test_variables_of_a_comprehension_are_not_looked_for() -> None:
    """From Python 3.12 on they are among the symbols of what is around them, as a list of configurations has some."""
    text = "@tuned([Config({'B': b}, w) for b in SIZES for w in (1, 2)])\ndef f(x):\n    return [y + G for y in x]\n"
    assert free_names(ast.parse(text).body[0]) == ["Config", "G", "SIZES", "tuned"]
