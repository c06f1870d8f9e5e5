# ruff: noqa: E501 - a line of code to a case
"""The object file of a HIP candidate may need what kernels need, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.platforms.cpu.hip.toolchain import HipCpuToolchain
from arena.platforms.cuda.hip_nvcc import HipNvccToolchain, find_nvcc
from arena.platforms.toolchains.base import Built, Source, Target
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.elf import Elf, Section
from arena.platforms.toolchains.hip_compilers import find
from arena.platforms.toolchains.hip_symbols import allowed_symbols, broken_rules, of_object

HEADER = """#pragma once
#include <stdint.h>
#include <hip/hip_runtime.h>
extern "C" hipError_t entry(const float* x, float* y, int64_t n, hipStream_t stream);
"""
KERNEL = """#define JOIN(a, b) a##b
#define PASTED JOIN(__as, m__)  // spelt out, it is refused with a word of its own
// BEFORE
#include "task.h"
__global__ void k(const float* x, float* y, int n) { y[threadIdx.x] = expf(x[threadIdx.x]); }
extern "C" hipError_t entry(const float* x, float* y, int64_t n, hipStream_t stream) {
    // HERE
    k<<<1, 32, 0, stream>>>(x, y, n);
    return hipGetLastError();
}
"""
pytestmark = [
    pytest.mark.skipif(find()[0].missing, reason="no C++ compiler on this machine"),
]


@pytest.fixture(scope="module")
def toolchain(tmp_path_factory: pytest.TempPathFactory) -> HipCpuToolchain:
    return HipCpuToolchain(BuildCache(tmp_path_factory.mktemp("builds")))


def said(toolchain: HipCpuToolchain, before: str, here: str) -> str:
    kernel = KERNEL.replace("// BEFORE", before).replace("// HERE", here)
    built = toolchain.build(Source(kernel, HEADER), Target("cpu"))
    assert isinstance(built, Built), built.log
    return "; ".join(broken_rules(built.library, "cpu"))


@pytest.mark.slow(but=["[-"])
@pytest.mark.parametrize(
    ("before", "here"),
    [
        ("", ""),
        ("#include <stdio.h>", 'printf("%f", sqrt(double(n)) + lgammaf(n) + exp2f(n)); fflush(stdout);'),
        ("#include <map>\n#include <string>", "static std::map<std::string, int> seen; ++seen[std::to_string(n)];"),
        ("#include <unordered_map>\n#include <mutex>", "static std::mutex m; std::lock_guard<std::mutex> one(m);"),
        ("#include <vector>\n#include <algorithm>", "std::vector<int64_t> v(n); std::sort(v.begin(), v.end());"),
        ("#include <unordered_map>", "static std::unordered_map<int64_t, int> seen; ++seen[n];"),
        ("#include <iostream>\n#include <sstream>", 'std::ostringstream s; s << n << 1.5; std::cerr << s.str() << "\\n";'),
        ("#include <stdexcept>", 'try { if (n < 0) throw std::runtime_error("n"); } catch (...) { return hipErrorUnknown; }'),
        ("#include <functional>\n#include <memory>", "std::function<int()> f = [=] { return int(n); }; auto p = std::make_shared<int>(f()); (void)p;"),
        ("#include <cassert>\n#include <cstring>", "char a[64], b[64]; memset(a, int(n), 64); memcpy(b, a, 64); assert(b[1] == a[1]);"),
        ("", "__int128 w = n; w = w / 7 * w; float* s = nullptr; (void)hipMalloc(&s, size_t(w)); (void)hipFree(s);"),
        ("#include <chrono>", "auto t = std::chrono::steady_clock::now(); (void)t;"),
        ("", 'PASTED volatile("" ::: "memory");'),
    ],
)  # fmt: skip
def test_what_kernels_need_is_allowed(toolchain: HipCpuToolchain, before: str, here: str) -> None:
    assert said(toolchain, before, here) == ""


@pytest.mark.slow(but=["stdio", "unistd"])
@pytest.mark.parametrize(
    ("before", "here", "names"),
    [
        ("#include <dlfcn.h>", 'dlsym(nullptr, "a");', "`dlsym`"),
        ('extern "C" void* f(void*) PASTED("dl" "open");', "f(nullptr);", "`dlopen`"),
        ('PASTED(".symver found, dlopen@GLIBC_2.34"); extern "C" void* found(void*, int);', "found(nullptr, 1);", "dlopen"),
        ("#include <link.h>", "if (_r_debug.r_map) return hipErrorUnknown;", "`_r_debug`"),
        ("#include <unistd.h>", "char c; if (write(1, y, 1) < 0) return hipErrorUnknown; (void)c;", "`write`"),
        ("#include <sys/mman.h>", "mprotect(y, 1, 3);", "`mprotect`"),
        ("#include <stdlib.h>", 'if (system("true")) return hipErrorUnknown;', "`system`"),
        ("#include <thread>", "std::thread([] {}).join();", "thread"),
        ("#include <fstream>", 'std::ifstream f("/etc/passwd"); if (f) return hipErrorUnknown;', "basic_"),
        ("#include <stdio.h>", 'if (fopen("/proc/self/mem", "r")) return hipErrorUnknown;', "`fopen`"),
        ("#include <signal.h>", "signal(SIGSEGV, SIG_IGN);", "`signal`"),
        ("namespace at { __attribute__((weak)) void matmul(); }", "if (&at::matmul) at::matmul();", "`at::matmul`"),
        ('extern "C" __attribute__((weak)) int PyRun_SimpleString(const char*);', "if (&PyRun_SimpleString) return hipErrorUnknown;", "`PyRun_SimpleString`"),
        ("", 'PASTED volatile("nop");', "inline assembly"),
        ("", 'PASTED volatile("#NO_APP\\n\\tnop\\n#APP");', "inline assembly"),
        ('PASTED(".text\\nmine: ret");', "", "inline assembly"),
        ('PASTED(".pushsection .interp\\n.popsection");', "", "`.interp`"),
        ('__attribute__((section(".text.mine"))) extern const char code[] = {15, 5};', "", "`code` is data in an executable section"),
        ('__attribute__((section(".mine,\\"awx\\",@progbits#"))) int mine = 1;', "", "`.mine`"),
        ("extern \"C\" { static void* pick() { return nullptr; } void chosen() __attribute__((ifunc(\"pick\"))); }", "chosen();", "`chosen`"),
    ],
)  # fmt: skip
def test_what_an_object_may_not_need_is_named(toolchain: HipCpuToolchain, before: str, here: str, names: str) -> None:
    assert names in said(toolchain, before, here)


@pytest.mark.parametrize(("name", "flags"), [(".text.k", 0x2), (".rodata.k", 0x6)])
def test_code_among_data_is_named_as_is_data_among_code(name: str, flags: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clang marks constant data of `.text.k` as data, where GNU's assembler marks it as code; linkers go by the name."""
    monkeypatch.setattr(Elf, "__init__", lambda _: None)
    monkeypatch.setattr(Elf, "sections", lambda _: iter([Section(name, 1, flags, 0, 3, 0)]))
    monkeypatch.setattr(Elf, "symbols", lambda _: iter(()))
    found = list(of_object(Elf(), allowed_symbols("amd")))  # type: ignore[call-arg]
    assert "section_executable" in found[0]
    assert f"`{name}`" in found[0]


def test_a_library_on_the_candidates_word_is_named(toolchain: HipCpuToolchain, tmp_path: Path) -> None:
    """What a linker was talked into is told by the library itself."""
    built = toolchain.build(Source(KERNEL, HEADER), Target("cpu"))
    assert isinstance(built, Built)
    for name in ("kernel.o", "kernel.s", "kernel.so"):
        data = built.library.with_name(name).read_bytes()
        (tmp_path / name).write_bytes(data.replace(b"libhip_cpu.so\0", b"libcublasX.so\0"))
    assert "`libcublasX.so` may not be linked" in "; ".join(broken_rules(tmp_path / "kernel.so", "cpu"))


@pytest.mark.slow
@pytest.mark.skipif(find_nvcc() is None, reason="no nvcc on this machine")
def test_nvidia_objects_may_need_the_runtime_and_not_what_loads_code(tmp_path: Path) -> None:
    toolchain = HipNvccToolchain(BuildCache(tmp_path), compiler=str(find_nvcc()))
    right = toolchain.build(Source(KERNEL, HEADER), Target("sm_90"), 300)
    assert isinstance(right, Built), right.log
    assert broken_rules(right.library, "nvidia") == []
    loads = KERNEL.replace("// HERE", "cudaLibrary_t l; cudaLibraryLoadFromFile(&l, 0, 0, 0, 0, 0, 0, 0);")
    built = toolchain.build(Source(loads, HEADER), Target("sm_90"), 300)
    assert isinstance(built, Built), built.log
    assert "`cudaLibraryLoadFromFile` may not be used" in "; ".join(broken_rules(built.library, "nvidia"))
