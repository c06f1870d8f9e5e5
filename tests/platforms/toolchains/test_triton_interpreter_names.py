"""Interpreted kernels may name what compiled ones may: the rest is refused before anything runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, os, sys
os.environ["TRITON_INTERPRET"] = "1"
from arena.platforms.cpu.triton import install
install()
import importlib.util, torch
outcomes = {}
for name in json.loads(sys.argv[1]):
    spec = importlib.util.spec_from_file_location("one", name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x, y = torch.ones(16), torch.zeros(16)
    try:
        module.run(x, y)
        outcomes[name] = "ran" if y.sum() == 32 else "wrong"
    except Exception as problem:
        outcomes[name] = f"{type(problem.__cause__ or problem).__name__}: {problem}"
print(json.dumps(outcomes))
"""
HEAD = """
import math, torch
import triton, triton.language as tl
from triton.language import load
from triton.runtime.interpreter import np
TWO = tl.constexpr(2.0)
FACTOR = math.sqrt(4.0)
def helper(x): return x * 2.0
def claimed(x): return x * 2.0
claimed.__module__ = "triton.language.core"
class Helper:
    def times(self, x): return x * 2.0
class Number(int):
    def times(self, x): return x * 2.0
class Tensor(torch.Tensor):
    def times(self, x): return x * 2.0
NUMBER, HELPER, WRAPPED = Number(2), Helper(), tl.constexpr(np)
PAIR = tl.constexpr((2.0, 3))
@triton.jit
def doubled(x): return x * TWO
@triton.jit
def kernel(x_ptr, y_ptr, F: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = load(x_ptr + at)
    {}
    tl.store(y_ptr + at, y)
def run(x, y): kernel[(1,)](x, y, {}, N=16)
"""
FINE = (
    "y = doubled(x)",
    "y = x * PAIR.value[0]",
    "y = F(x)",
    "y = tl.math.sqrt(x) * TWO",
    "y = x * float(2) if len([1]) else x",
)
REFUSED = {
    "y = helper(x)": "NameError: line 25 of the file: `helper`",
    "y = np.add(x, x)": "NameError: line 25 of the file: `np`",
    "y = x + x; x.handle.data[0] = 1": "NameError: line 25 of the file: `.handle`",
    "y = x + x; getattr(x, 'han' + 'dle')": "NameError: line 25 of the file: `getattr(",
    "y = triton.runtime.interpreter.np.add(x, x)": "NameError: line 25 of the file: `triton.runtime.interpreter",
    "y = x.__class__": "NameError: line 25 of the file: `.__class__`",
    "y = claimed(x)": "NameError: line 25 of the file: `claimed`",
    "y = NUMBER.times(x)": "NameError: line 25 of the file: `NUMBER`",
    "y = HELPER.times(x)": "NameError: line 25 of the file: `HELPER`",
    "y = WRAPPED.value.add(x, x)": "NameError: line 25 of the file: `WRAPPED`",
    "y = eval('x + x')": "NameError: line 25 of the file: `eval`",
    "import numpy; y = x + x": "NameError: line 25 of the file: Import ",
    "y = (lambda: x + x)()": "NameError: line 25 of the file: Lambda ",
}


PASSED = (
    *(("y = F(x)", "helper"), ("y = F(x)", "claimed"), ("y = F.add(x, x)", "np"), ("y = F.times(x)", "HELPER")),
    *(("y = F.times(x)", "NUMBER"), ("y = F.times(x)", "y.as_subclass(Tensor)")),
    ("y = F.value.add(x, x)", "WRAPPED"),
)
"""bodies of kernels, and what they are passed as a constant"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What came of each kernel, in a process of its own."""
    folder = tmp_path_factory.mktemp("kernels")
    files = {}
    bodies = [(body, "doubled") for body in (*FINE, *REFUSED)]
    for index, (body, passed) in enumerate([*bodies, *PASSED]):
        files[f"{body} {passed}"] = folder / f"kernel_{index}.py"
        files[f"{body} {passed}"].write_text(HEAD.format(body, passed))
    paths = json.dumps([str(file) for file in files.values()])
    done = subprocess.run([sys.executable, "-c", SCRIPT, paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return {text: found[str(file)] for text, file in files.items()}


@pytest.mark.parametrize("body", FINE)
def test_what_triton_compiles_runs(outcomes: dict[str, str], body: str) -> None:
    assert outcomes[f"{body} doubled"] == "ran"


@pytest.mark.parametrize("body", REFUSED)
def test_what_triton_does_not_know_is_refused(outcomes: dict[str, str], body: str) -> None:
    assert outcomes[f"{body} doubled"].startswith(REFUSED[body])


@pytest.mark.parametrize("body", [" ".join(one) for one in PASSED])
def test_a_constant_is_no_way_to_pass_a_function_of_python(outcomes: dict[str, str], body: str) -> None:
    assert outcomes[body].startswith("TypeError:")


@pytest.mark.slow
def test_every_kernel_of_the_corpus_names_what_it_may() -> None:
    root = Path(__file__).resolve().parents[3] / "tasks" / "triton2triton"
    script = (
        "import os, sys; os.environ['TRITON_INTERPRET'] = '1'\n"
        "from pathlib import Path\n"
        "from arena.platforms.cpu.triton import install, names; install()\n"
        "from arena.platforms.cpu.triton.internals import Internals\n"
        "from arena.task.numerics.reference import load_module\n"
        "at = Internals(); kind = at.interpreter.InterpretedFunction; allows = names._allowing(at, kind); kernels = 0\n"
        "for file in sorted(Path(sys.argv[1]).rglob('*.py')):\n"
        "    if '@triton.jit' not in file.read_text(): continue\n"
        "    for value in list(vars(load_module(file, 'one')).values()):\n"
        "        while not isinstance(value, kind) and hasattr(value, 'fn'): value = value.fn\n"
        "        if isinstance(value, kind):\n"
        "            kernels += 1\n"
        "            assert not list(names.forbidden(value.fn, allows)), file\n"
        "assert kernels > 150, kernels\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(root)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
