"""What is taken out of compilers' logs. The logs are real ones, of kernels written for this, shortened."""

from __future__ import annotations

import pytest

from arena.platforms.toolchains.hip_resources import short_name, take_amd, take_nvidia
from arena.results.portability import KernelUse

# clang 22, gfx942: a warning, a kernel in a namespace that spills, a function it calls, an instantiation that does not.
TAG = "[-Rpass-analysis=kernel-resource-usage]"
AMD = f"""kernel.hip:2:2: warning: "slow" [-W#warnings]
    2 | #warning "slow"
      |  ^
kernel.hip:4:1: remark: Function Name: _ZN2ns2spIfLi200EEEvPKT_PS1_ {TAG}
    4 | namespace ns {{ template <class T, int N> __global__ void sp(const T* x, T* y) {{
      | ^
kernel.hip:4:1: remark:     TotalSGPRs: 11 {TAG}
kernel.hip:4:1: remark:     VGPRs: 126 {TAG}
kernel.hip:4:1: remark:     AGPRs: 2 {TAG}
kernel.hip:4:1: remark:     ScratchSize [bytes/lane]: 1228 {TAG}
kernel.hip:4:1: remark:     Dynamic Stack: False {TAG}
kernel.hip:4:1: remark:     Occupancy [waves/SIMD]: 3 {TAG}
kernel.hip:4:1: remark:     SGPRs Spill: 0 {TAG}
kernel.hip:4:1: remark:     VGPRs Spill: 462 {TAG}
kernel.hip:4:1: remark:     LDS Size [bytes/block]: 512 {TAG}
kernel.hip:9:1: remark: Function Name: _Z6helperPf {TAG}
    9 | __device__ __noinline__ void helper(float* y) {{
      | ^
kernel.hip:9:1: remark:     TotalSGPRs: 40 {TAG}
kernel.hip:9:1: remark:     VGPRs: 200 {TAG}
kernel.hip:4:1: remark: Function Name: _ZN2ns2spIfLi20EEEvPKT_PS1_ {TAG}
kernel.hip:4:1: remark:     TotalSGPRs: 18 {TAG}
kernel.hip:4:1: remark:     VGPRs: 64 {TAG}
kernel.hip:4:1: remark:     AGPRs: 0 {TAG}
kernel.hip:4:1: remark:     ScratchSize [bytes/lane]: 0 {TAG}
kernel.hip:4:1: remark:     Occupancy [waves/SIMD]: 8 {TAG}
kernel.hip:4:1: remark:     VGPRs Spill: 0 {TAG}
kernel.hip:4:1: remark:     LDS Size [bytes/block]: 512 {TAG}
1 warning generated when compiling for gfx942.
"""
# nvcc 13, sm_90.
NVIDIA = """kernel.hip:2:2: warning: #warning "slow" [-Wcpp]
    2 | #warning "slow"
      |  ^
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN2ns2spIfLi20EEEvPKT_PS1_' for 'sm_90'
ptxas info    : Function properties for _ZN2ns2spIfLi20EEEvPKT_PS1_
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 48 registers, used 1 barriers, 512 bytes smem
ptxas info    : Compile time = 14.509 ms
ptxas info    : Compiling entry function '_ZN2ns2spIfLi200EEEvPKT_PS1_' for 'sm_90'
ptxas info    : Function properties for _ZN2ns2spIfLi200EEEvPKT_PS1_
    1512 bytes stack frame, 2176 bytes spill stores, 2252 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 1512 bytes cumulative stack size, 512 bytes smem
ptxas info    : Compile time = 86.578 ms
ptxas info    : Function properties for _Z6helperPf
    8 bytes stack frame, 9999 bytes spill stores, 8 bytes spill loads
ptxas info    : Compiling entry function 'plain' for 'sm_90'
ptxas info    : Function properties for plain
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
ptxas info    : Compile time = 0.794 ms

"""


def test_amd_remarks_become_one_entry_per_kernel() -> None:
    log, kernels = take_amd(AMD, "gfx942")
    assert kernels == (KernelUse("ns::sp", 128 + 2, 512, 1228, 18, 3 / 8),)
    assert log.splitlines() == [*AMD.splitlines()[:3], "1 warning generated when compiling for gfx942."]


def test_ptxas_lines_become_one_entry_per_kernel() -> None:
    log, kernels = take_nvidia(NVIDIA, "sm_90")
    assert kernels == (KernelUse("ns::sp", 64, 512, 2176, 0, 0.5), KernelUse("plain", 10, occupancy=1.0))
    assert log.splitlines() == NVIDIA.splitlines()[:3]


def test_a_clean_log_becomes_empty() -> None:
    assert take_nvidia("\n".join(NVIDIA.splitlines()[3:]), "sm_90")[0] == ""
    assert take_amd("\n".join(AMD.splitlines()[3:-1]), "gfx942")[0] == ""
    assert take_amd("kernel.hip:3:1: error: no\n", "gfx942") == ("kernel.hip:3:1: error: no\n", ())


def test_of_an_unlisted_gpu_the_occupancy_is_unknown() -> None:
    assert {use.occupancy for use in take_amd(AMD, "gfx906")[1]} == {None}
    assert {use.occupancy for use in take_nvidia(NVIDIA, "sm_75")[1]} == {None}


def test_invented_lines_cannot_make_a_kernel_look_better() -> None:
    remarks = ("Function Name: _ZN2ns2spIfLi200EEEvPKT_PS1_", "VGPRs: 1", "Occupancy [waves/SIMD]: 8", "LDS Size: 0")
    fake = "".join(f"kernel.hip:4:1: remark: {remark} {TAG}\n" for remark in remarks)
    ptxas = "ptxas info    : Compiling entry function '_ZN2ns2spIfLi200EEEvPKT_PS1_' for 'sm_90'\n"
    ptxas += "ptxas info    : Used 1 registers, used 0 barriers\n"
    for before, after in ((fake, ""), ("", fake)):
        assert take_amd(before + AMD + after, "gfx942")[1] == take_amd(AMD, "gfx942")[1]
    for before, after in ((ptxas, ""), ("", ptxas)):
        assert set(take_nvidia(before + NVIDIA + after, "sm_90")[1]) == set(take_nvidia(NVIDIA, "sm_90")[1])


def test_a_log_that_was_cut_says_nothing_of_resources() -> None:
    cut = "\n[4096 more bytes of output dropped]"
    assert take_amd(AMD + cut, "gfx942")[1] == ()
    assert take_nvidia(NVIDIA + cut, "sm_90")[1] == ()


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("plain", "plain"),
        ("_Z4copyPf", "copy"),
        ("_ZL4copyPf", "copy"),
        ("_ZN2ns2k3IfLi4EEEvPT_", "ns::k3"),
        ("_ZN12_GLOBAL__N_14copyEPf", "copy"),
        ("_ZZ4mainENKUlvE_clEv", "_ZZ4mainENKUlvE_clEv"),
    ],
)
def test_names_are_shortened(symbol: str, name: str) -> None:
    assert short_name(symbol) == name
