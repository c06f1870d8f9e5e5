"""What an agent finds in its folder, over every task: all it needs, and nothing of what is kept from it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from arena.platforms.toolchains.kernel_library import headers
from arena.platforms.toolchains.task_header import prototype
from arena.results.environment import DeviceFacts
from arena.results.session import Limits
from arena.runs.service.workspace import prepare, prompt_text
from arena.task.corpus.task_folder import HELDOUT, SEMANTICS, TASKS, load_task
from arena.task.definition import Arithmetic, Task, TaskType
from tests.runs.service.examples import CPU, H200, MI300X, environment
from tests.shipped import shipped_tasks

Corpus = list[tuple[Task, Path]]
NO_LIMITS = Limits()
MADE_HERE = {"TASK.md", "seen.yaml", "reference.py", "evaluate"}
HIP_HEADERS = {"task.h", "headers/block.h", "headers/matrix.h", "headers/product.h"}
TELLING = 40
"""A line of an expert of at least so many characters would say something of it."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """The workspace of every task, prepared for the CPU."""
    root = tmp_path_factory.mktemp("workspaces")
    made = []
    for task in shipped_tasks().values():
        folder = root / task.id
        folder.mkdir(parents=True)
        prepare(folder, task, environment(CPU), Limits())
        made.append((task, folder))
    return made


def workspace(tmp_path: Path, name: str, device: DeviceFacts = CPU, limits: Limits = NO_LIMITS) -> Path:
    prepare(tmp_path, load_task(TASKS / name), environment(device), limits)
    return tmp_path


def files(folder: Path) -> dict[str, str]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): unwrapped(path) for path in found}


def unwrapped(path: Path) -> str:
    """What a file says; of YAML with each case on one line."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r",\n +", ", ", text) if path.suffix == ".yaml" else text


def without_regimes(line: str) -> str:
    """The line of a case without other values of its sizes."""
    begin = line.find(", regimes: {")
    if begin < 0:
        return line
    depth, end = 1, line.index("{", begin) + 1
    while depth:
        depth += {"{": 1, "}": -1}.get(line[end], 0)
        end += 1
    return line[:begin] + line[end:]


def heldout_lines(task: Task) -> Iterator[str]:
    """Each held-out case's values as its line writes them."""
    lines = re.findall(r"^- \{(.*)\}$", unwrapped(task.path / HELDOUT), re.MULTILINE)
    cases = [case for case in task.heldout if not case.regime]
    assert len(lines) == len(cases), f"{task.id}: a held-out case is no flow mapping"
    for line in map(without_regimes, lines):
        values = re.sub(r"^kind: \w+, ", "", line.removesuffix(", timed: true"))
        yield re.sub(r", note: [^,}]*(, (?!\w+: )[^,}]*)*", "", values)


def test_nothing_of_the_heldout_cases_is_there(corpus: Corpus) -> None:
    for task, folder in corpus:
        texts = files(folder)
        for values in heldout_lines(task):
            pattern = rf"[{{ ]{re.escape(values)}(?:}}|, note|, timed|, regimes)"
            assert not [name for name, text in texts.items() if _holds(text, values, pattern)], f"{task.id}: {values}"
        for case in task.heldout:
            label = rf"(?<![\w.]){re.escape(case.label)}(?! without)(?![\w.=])"
            assert not [name for name, text in texts.items() if _holds(text, case.label, label)], task.id + case.label


def _holds(text: str, wanted: str, pattern: str) -> bool:
    """Return whether a text matches; the words alone are looked for first, which is faster."""
    return wanted in text and re.search(pattern, text) is not None


def test_the_search_for_heldout_cases_finds_one(corpus: Corpus) -> None:
    """The line that the test above looks for is what the file says, so that a leak would be found."""
    for task, _ in corpus:
        text = unwrapped(task.path / HELDOUT)
        for values in heldout_lines(task):
            assert re.search(rf"[{{ ]{re.escape(values)}(?:}}|, note|, timed|, regimes)", text), f"{task.id}: {values}"


def test_nothing_of_experts_and_checks_is_there(corpus: Corpus) -> None:
    for task, folder in corpus:
        texts = files(folder)
        shown = [path.read_text(encoding="utf-8") for path in _given(task)]
        given = "\n".join((*shown, _signatures(task), *headers().values()))
        secrets = [*task.exceptions.values(), *task.equivalent_mutants.values()]
        if task.expert is not None:
            lines = (line.strip() for line in task.expert.read_text(encoding="utf-8").splitlines())
            secrets += [line for line in lines if len(line) >= TELLING and line not in given]
        for secret in secrets:
            assert not [name for name, text in texts.items() if secret in text], f"{task.id}: {secret}"


def _signatures(task: Task) -> str:
    """The entry's, in each of its forms, which an expert must repeat."""
    parameters = ", ".join(spec.name for spec in (*task.inputs, *task.outputs))
    return "\n".join((parameters, prototype(task), prototype(task, workspace=True)))


def _given(task: Task) -> Iterator[Path]:
    """What is given to the agent as it is, and may share lines with an expert."""
    yield task.reference_path
    yield from SEMANTICS.glob("*.py")
    if task.baseline_kernel is not None:
        yield task.baseline_kernel


@pytest.mark.parametrize(("device", "wanted"), [(MI300X, "float8_e4m3fnuz"), (H200, "float8_e4m3fn")])
def test_the_agent_is_told_what_fp8_is_on_its_device(tmp_path: Path, device: DeviceFacts, wanted: str) -> None:
    text = prompt_text(workspace(tmp_path, "triton2triton/gemm/w8a8_block_scaled_mm", device))
    assert f"The dtype `fp8` is PyTorch's `{wanted}` on this device." in text
    other = prompt_text(workspace(tmp_path, "triton2triton/normalization/rms_norm", device))
    assert "fp8" not in other.split("## Device")[0]


def test_only_the_files_that_are_meant_are_there(corpus: Corpus) -> None:
    for task, folder in corpus:
        expected = set(MADE_HERE)
        expected |= {task.task_type.kernel_file} if task.task_type is not TaskType.TORCH2HIP else set()
        expected |= HIP_HEADERS if task.task_type is not TaskType.TRITON2TRITON else set()
        left = set(files(folder)) - expected
        assert expected <= set(files(folder)), task.id
        assert all(name.startswith("arena/semantics/") or name == "arena/__init__.py" for name in left), task.id


def test_references_can_be_imported_in_their_folders(corpus: Corpus) -> None:
    """With PyTorch and what lies in the folder: `arena` is that of the workspace, every module it names is there."""
    needing = [str(folder) for _, folder in corpus if (folder / "arena").is_dir()]
    assert len(needing) > 50
    script = """
import importlib, pathlib, sys
for folder in sys.stdin.read().split():
    sys.path[0] = folder
    for name in [n for n in sys.modules if n == "reference" or n.split(".")[0] == "arena"]:
        del sys.modules[name]
    reference = importlib.import_module("reference")
    assert callable(reference.reference) and reference.__file__.startswith(folder)
    for path in pathlib.Path(folder, "arena", "semantics").glob("*.py"):
        module = importlib.import_module("arena.semantics." + path.stem if path.stem != "__init__" else "arena")
        assert module.__file__.startswith(folder), module.__file__
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, input="\n".join(needing), capture_output=True, text=True, timeout=60, cwd=needing[0])
    assert done.returncode == 0, done.stderr


def test_the_signature_is_that_of_the_starting_kernel(corpus: Corpus) -> None:
    for task, folder in corpus:
        text = prompt_text(folder)
        if task.task_type is not TaskType.TRITON2TRITON:
            assert prototype(task) in text and prototype(task) in (folder / "task.h").read_text(), task.id
            continue
        told = re.search(rf"^def {task.entry}\((.*)\):$", text, re.MULTILINE)
        tree = ast.parse((folder / "kernel.py").read_text(encoding="utf-8"))
        entry = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == task.entry)
        assert told and len(told[1].split(", ")) == len(entry.args.args), task.id


def test_every_declaration_is_told(corpus: Corpus) -> None:
    for task, folder in corpus:
        text = prompt_text(folder)
        assert task.summary in text, task.id
        for axis in task.axes:
            assert f"| {axis.name} | " in text and axis.domain_text in text, f"{task.id}: {axis.name}"
        for constraint in task.constraints:
            assert f"- `{constraint.text}`" in text, f"{task.id}: {constraint.text}"
        for spec in (*task.inputs, *task.outputs):
            assert text.count(f"\n| {spec.name} | ") == 1, f"{task.id}: {spec.name}"
        for spec in (*task.outputs, *(s for s in task.tensors if s.mutable)):
            assert f"- `{spec.name}`: " in text, f"{task.id}: {spec.name}"
        for choices in task.dtypes.values():
            assert ", ".join(choices) in text, task.id
        assert not re.search(r"\n\n\n|\bNone \b|[{}]{2}", text.split("## Entry")[0]), task.id


def test_tables_hold_together(corpus: Corpus) -> None:
    """Every row of a table has as many cells as its head: nothing in a description ends one."""
    for task, folder in corpus:
        width = 0
        for line in prompt_text(folder).splitlines():
            cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
            assert not (width and cells) or cells == width, f"{task.id}: {line}"
            width = cells


def test_nvidia_gets_a_compiler_line_and_its_headers(tmp_path: Path) -> None:
    text = prompt_text(workspace(tmp_path, "hip2hip/modules/softmax", H200))
    assert re.search(r"^nvcc .* -arch=sm_90 -Iinclude -I\. -Iheaders -x cu kernel\.hip -o kernel\.so$", text, re.M)
    assert (tmp_path / "include" / "hip" / "hip_runtime.h").is_file()
    assert "NVIDIA H200, sm_90, wave size 32, 139 GiB" in text and "memory 4800 GB/s" in text


def test_amd_gets_hipcc(tmp_path: Path) -> None:
    text = prompt_text(workspace(tmp_path, "torch2hip/modules/softmax", MI300X))
    assert re.search(r"^hipcc --offload-arch=gfx942 .* kernel\.hip -o kernel\.so$", text, re.MULTILINE)
    assert "There is no baseline kernel" in text and "PyTorch eager" in text and "wave size 64" in text
    assert not (tmp_path / "include").exists() and not (tmp_path / "kernel.hip").exists()
    assert "unsafeAtomicAdd" not in text
    (other := tmp_path / "other").mkdir()
    older = prompt_text(workspace(other, "torch2hip/modules/softmax", replace(MI300X, arch="gfx90a")))
    assert "`unsafeAtomicAdd` is one instruction" in older


def test_the_emulation_is_called_one(tmp_path: Path) -> None:
    text = prompt_text(workspace(tmp_path, "hip2hip/modules/softmax"))
    assert "None. Kernels run in an emulation on the CPU" in text and "32 and 64" in text
    assert "for none in particular" in text and "device graph" not in text and "nvcc" not in text


def test_limits_are_told_where_there_are_any(tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    (tmp_path / "none").mkdir()
    limits = Limits(wall_clock_s=5400, evaluations=7, tokens=250_000, cost_usd=2.5)
    text = prompt_text(workspace(tmp_path / "some", "hip2hip/modules/softmax", limits=limits))
    assert "- 90 minutes" in text and "- 7 evaluations" in text
    assert "- 250000 tokens" in text and "- 2.5 US dollars" in text
    text = prompt_text(workspace(tmp_path / "none", "hip2hip/modules/softmax"))
    assert "tokens" not in text.split("## Limits")[1] and "dollars" not in text


def test_comparisons_are_told_in_words(tmp_path: Path) -> None:
    names = ("sampling/gumbel_sample", "quantization/silu_mul_fp8_quant_dg", "gemm/scaled_mm")
    texts = []
    for name in names:
        folder = tmp_path / Path(name).name
        folder.mkdir()
        texts.append(prompt_text(workspace(folder, f"triton2triton/{name}", H200)))
    assert "`sampled`: any choice whose regret, by `regret` in reference.py, is at most 0.0001" in texts[0]
    assert "`q`: at most one code step off, in at most 1 % of the elements" in texts[1]
    assert (
        "for float32: |error| ≤ E · RMS + (E + 1.2e-07) · |expected|, with E of at least 6.1e-05; for float16:"
        in texts[2]
    )
    assert "| b | input | [K, N] | in_dtype | [1, K] |" in texts[2] and "bias: a case may leave it out" in texts[2]


@pytest.mark.parametrize(
    ("arithmetic", "words"),
    [
        (
            Arithmetic.INPUTS,
            "operands of matrix products may be rounded to bfloat16 or float16, as the inputs are; float32",
        ),
        (
            Arithmetic.TF32,
            "operands of matrix products may be rounded to bfloat16 or float16 or tf32, as the inputs are. ",
        ),
        (Arithmetic.FLOAT32, "operands of matrix products are float32 (TF32 is not enough). Sums and"),
        (
            Arithmetic.OPERATORS,
            "the result of every operator in reference.py may be rounded to a 16-bit dtype of inputs",
        ),
    ],
)
def test_the_allowed_arithmetic_is_told(tmp_path: Path, arithmetic: Arithmetic, words: str) -> None:
    task = replace(load_task(TASKS / "hip2hip/modules/simple_matmul"), arithmetic=arithmetic)
    prepare(tmp_path, task, environment(CPU), Limits())
    text = prompt_text(tmp_path)
    assert f"Arithmetic: {words}" in text
    assert ("E is twice" if arithmetic is Arithmetic.OPERATORS else "E is four times") in text
