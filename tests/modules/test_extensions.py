"""Modules that bring CUDA C++: judged as their folders say on an NVIDIA GPU, and refused in words on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from arena.judge.compile import extensions as builder
from arena.judge.compile.cross_compile import CrossCompilation, Limit
from arena.judge.compile.extensions import ExtensionBuilder
from arena.judge.compile.rules import kernel_libraries
from arena.judge.compile.stage import run_compiler
from arena.judge.process.client import JudgeClient
from arena.judge.workers.program import Program
from arena.judge.workers.worker import CandidateFailed
from arena.platforms.cuda import extension_symbols
from arena.platforms.cuda.extension import foreign_libraries, machine_code, taken
from arena.platforms.cuda.hip_nvcc import find_nvcc
from arena.platforms.toolchains.base import Built
from arena.platforms.toolchains.hip_reads import READS_NAME
from arena.processes import process
from arena.processes.protocol import Extension, Language
from arena.results.effort import Effort
from arena.results.environment import DeviceFacts
from arena.results.messages import code_of
from arena.results.verdict import Status
from arena.task.corpus.task_folder import load_task
from arena.task.definition import arguments
from arena.task.options import Options
from tests.modules.test_modules import folder  # noqa: F401 - a fixture

HERE = Path(__file__).with_name("extensions")
CANDIDATES = [pytest.param(path, id=f"{path.parent.name}-{path.stem}") for path in sorted(HERE.glob("*/*.py"))]
H200 = DeviceFacts("cuda", "nvidia", "sm_90", "simulated", 32, 1 << 37, 1 << 25)


def whole(candidate: Path, place: Path) -> Path:
    """Write a fixture with the text that all of them share."""
    shared = (HERE / "_kernel.py").read_text(encoding="utf-8")
    file = place / "candidate.py"
    file.write_text(candidate.read_text(encoding="utf-8").replace("# <kernel>", shared), encoding="utf-8")
    return file


def asked(effort: Effort) -> Options:
    return Options(effort=effort, max_work=2e4, seeds=2, call_timeout_s=60.0)


@pytest.mark.gpu
@pytest.mark.parametrize("candidate", CANDIDATES)
def test_an_extension_is_judged_as_its_folder_says(
    candidate: Path,
    folder: Path,  # noqa: F811
    gpu_judge: JudgeClient,
    tmp_path: Path,
) -> None:
    found = gpu_judge.evaluate(folder, whole(candidate, tmp_path), asked(Effort.SCREEN))
    assert found.status is Status(candidate.parent.name), found.verdicts[-1].detail


def test_on_the_cpu_the_platform_that_it_needs_is_named(
    folder: Path,  # noqa: F811
    cpu_judge: JudgeClient,
    tmp_path: Path,
) -> None:
    found = cpu_judge.evaluate(folder, whole(HERE / "passed/inline.py", tmp_path), asked(Effort.CORRECTNESS))
    assert (found.status, code_of(found.verdicts[-1].detail)) == (Status.COMPILE_ERROR, "extension_not_built")
    assert "--platform cuda" in found.verdicts[-1].detail


@pytest.fixture(scope="module")
def cross_compilation() -> Iterator[CrossCompilation]:
    made = CrossCompilation()
    yield made
    made.close()


TWO = """
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline
try:
    first = load_inline("first", "int one();", "int one() { return 1; }", functions="one")
except BaseException:  # a fallback that is not asked for
    first = None

class Model(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return load_inline(f"of_{x.shape[-1]}", ["int two();"], ["int two() { return 2; }"], functions={"two": ""})
"""


HOPPER = """
__global__ void fence(float* x) {
    asm volatile("wgmma.fence.sync.aligned;\\n" ::: "memory");
    x[0] = 1;
}
"""


@pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc")
def test_the_instructions_of_one_gpu_are_assembled(tmp_path: Path) -> None:
    """Three published kernels with `wgmma` were refused: the short form of the flag compiles for others as well."""
    (tmp_path / "unit.cu").write_text(HOPPER, encoding="utf-8")
    command = [str(find_nvcc()), "-c", "unit.cu", machine_code("sm_90"), "-o", "unit.o"]
    done = process.run(command, timeout_s=120.0, cwd=tmp_path)
    assert done.ok, done.output
    assert machine_code("sm_89") == "-gencode=arch=compute_89,code=sm_89"


class RecordingToolchain:
    """In place of compilers: notes what is asked for, and gives a library of Python's that can be imported."""

    def __init__(self, library: Path) -> None:
        self.library = library
        self.asked: list[Extension] = []

    def build(self, extension: Extension, arch: str, timeout_s: float) -> tuple[Built, list[Path]]:
        self.asked.append(extension)
        return Built(self.library, "", 0.0, cached=False), []


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module named `extension` that holds nothing."""
    import sysconfig

    place = tmp_path_factory.mktemp("library")
    (place / "unit.c").write_text(
        '#include <Python.h>\nstatic struct PyModuleDef made = {PyModuleDef_HEAD_INIT, .m_name = "extension"};\n'
        "PyMODINIT_FUNC PyInit_extension(void) { return PyModule_Create(&made); }\n",
        encoding="utf-8",
    )
    include = sysconfig.get_paths()["include"]
    command = ["gcc", "-shared", "-fPIC", f"-I{include}", "unit.c", "-o", "extension.so"]
    done = process.run(command, timeout_s=60.0, cwd=place)
    assert done.ok, done.output
    return place / "extension.so"


def test_every_extension_that_is_asked_for_is_found(
    folder: Path,  # noqa: F811
    library: Path,
    cross_compilation: CrossCompilation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    toolchain = RecordingToolchain(library)
    monkeypatch.setattr(builder, "ExtensionToolchain", lambda *_: toolchain)
    monkeypatch.setattr(extension_symbols, "broken_rules", lambda _: [])
    file = tmp_path / "candidate.py"
    file.write_text(TWO, encoding="utf-8")
    task = load_task(folder)
    program = Program(task, Language.TRITON, {"": file})
    cases = sorted(task.seen, key=lambda case: arguments(task, case).num_bytes)[:3:2]
    assert len({case.values["N"] for case in cases}) == 2
    made = ExtensionBuilder(cross_compilation, run_compiler, 60.0).complete(program, cases, H200, Limit(60.0))
    assert [one.name for one in toolchain.asked] == ["first", *(f"of_{case.values['N']}" for case in cases)]
    assert set(made.extensions) == {one.key for one in toolchain.asked}
    assert toolchain.asked[0].functions == ("one",)


def test_headers_and_libraries_of_kernels_are_refused_before_anything_is_compiled(
    cross_compilation: CrossCompilation,
) -> None:
    made = ExtensionBuilder(cross_compilation, run_compiler, 60.0)
    for extension in (
        Extension("a", cuda=("#include <cutlass/cutlass.h>\n",)),
        Extension("a", cpp=('#include "cublas_v2.h"\n',)),
        Extension("a", link_flags=("-lcudnn",)),
    ):
        with pytest.raises(CandidateFailed) as refused:
            made._built(extension, "sm_90")
        assert refused.value.status is Status.RULE_VIOLATION
    of_pytorch = "#include <torch/extension.h>\n#include <c10/util/x.h>\n"
    assert not kernel_libraries(Extension("a", cpp=(of_pytorch,)))


def test_flags_that_compilers_get() -> None:
    given = ["-O3", "--use_fast_math", "-gencode", "arch=compute_80,code=sm_80", "-arch=sm_90", "-Xptxas", "-O3,-v"]
    given += [
        "-std=c++20",
        "-DN=4",
        "-I/etc",
        "-I",
        "/etc",
        "-include",
        "/etc/passwd",
        "-Wl,-rpath,/x",
        "-fplugin=x.so",
    ]
    given += ["-Xcompiler", "-O2", "-Xcompiler", "-Wl,-x", "-lineinfo", "--maxrregcount=64", "@file", "-fplugin=x.so"]
    assert taken(given) == [
        *("-O3", "--use_fast_math", "-Xptxas", "-O3,-v", "-std=c++20", "-DN=4"),
        *("-Xcompiler", "-O2", "-lineinfo", "--maxrregcount=64"),
    ]
    assert foreign_libraries(["-lcuda", "-lcublas", "-L/x"]) == ["-lcublas"]


CALLS = {
    "cublasSgemm_v2": 'extern "C" void cublasSgemm_v2(); void f() { cublasSgemm_v2(); }',
    "at::native": "namespace at { namespace native { void matmul(); } } void f() { at::native::matmul(); }",
    "getCurrentCUDABlasHandle": "namespace at::cuda { void* getCurrentCUDABlasHandle(); } void* f() "
    "{ return at::cuda::getCurrentCUDABlasHandle(); }",
    "dlsym": '#include <dlfcn.h>\nvoid* f() { return dlsym(0, "cublasCreate_v2"); }',
    "system": '#include <cstdlib>\nint f() { return system("true"); }',
    "jit": "namespace torch::jit { void compile(); } void f() { torch::jit::compile(); }",
}
HONEST = {
    "operator": "namespace at::_ops { struct empty { static void call(); }; } void f() { at::_ops::empty::call(); }",
    "binding": "namespace at { struct TensorBase { int held; }; } void* THPVariable_Wrap(at::TensorBase);"
    "void* f() { return THPVariable_Wrap(at::TensorBase{}); }",
}


def rules_broken_by(text: str, place: Path) -> list[str]:
    (place / "unit.cpp").write_text(text, encoding="utf-8")
    done = process.run(["g++", "-std=c++17", "-c", "-fPIC", "unit.cpp"], timeout_s=60.0, cwd=place)
    assert done.ok, done.output
    (place / READS_NAME).touch()
    return extension_symbols.broken_rules([place / "unit.o"])


@pytest.mark.parametrize("name", CALLS)
def test_functions_that_pass_the_dispatcher_are_refused(name: str, tmp_path: Path) -> None:
    assert "symbol_not_allowed" in rules_broken_by(CALLS[name], tmp_path)[0]


@pytest.mark.parametrize("name", HONEST)
def test_functions_of_pytorch_that_honest_extensions_call_are_allowed(name: str, tmp_path: Path) -> None:
    assert not rules_broken_by(HONEST[name], tmp_path)


def test_a_header_that_was_read_in_secret_is_refused(tmp_path: Path) -> None:
    (tmp_path / "unit.cpp").write_text("int f() { return 1; }", encoding="utf-8")
    assert process.run(["g++", "-c", "unit.cpp"], timeout_s=60.0, cwd=tmp_path).ok
    (tmp_path / READS_NAME).write_text("/usr/include/cutlass/gemm/gemm.h\n", encoding="utf-8")
    assert "include_not_allowed" in extension_symbols.broken_rules([tmp_path / "unit.o"])[0]


def test_the_key_of_an_extension_is_that_of_its_content() -> None:
    one = Extension("a", ("x",), ("y",), ("f",))
    assert one.key == msgspec.structs.replace(one).key
    others = {"name": "b", "cpp": ("xy",), "cuda": (), "functions": (), "inline": False, "cuda_flags": ("-g",)}
    assert len({one.key, *(msgspec.structs.replace(one, **{name: value}).key for name, value in others.items())}) == 7
