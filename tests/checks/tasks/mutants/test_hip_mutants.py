"""Faults in HIP sources: each of its kind, in the right place, and nothing else changed."""

from __future__ import annotations

import pytest

from arena.checks.tasks.mutants.base import Fault, Mutant, choose
from arena.checks.tasks.mutants.hip import COARSE, derive

KERNEL = """\
// x < y + 1.0f in a comment stays
constexpr int kThreads = 256;
__global__ void k(const T* x, T* y, int n) {
    if (threadIdx.x >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < n; ++i) sum += static_cast<float>(x[i]) * 2.5f;
    y[threadIdx.x] = static_cast<T>(n > 3 ? sum / n : sum - 1.0f);
}
extern "C" hipError_t entry(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const unsigned blocks = (M + kThreads - 1) / kThreads;
    k<<<blocks, kThreads, 0, stream>>>(x, y, M);
    helper(M, N);
    return hipGetLastError();
}
__device__ float peak(const float* x, int n) {
    float most = x[0];
    for (int i = threadIdx.x; i < n; i += kThreads) most = fmaxf(most, x[i]);
    for (int i = threadIdx.x; i < n; i += kThreads) most *= x[i];
    return most;
}
"""


def changes(fault: Fault) -> list[str]:
    return [f"{mutant.line}: {mutant.change}" for mutant in derive(KERNEL) if mutant.fault is fault]


@pytest.mark.parametrize(
    ("fault", "wanted"),
    [
        (Fault.BOUND, ["4: >= → >", "6: < → <=", "7: > → >=", "17: < → <=", "18: < → <="]),
        (Fault.MAXIMUM, ["17: fmaxf(most, x[i]) → fminf(fmaxf(fmaxf(most, x[i]), 0.0f), 0.0f)"]),
        (Fault.EVERY_OTHER, ["18: kThreads → 2 * kThreads"]),
        (Fault.CONSTANT, ["5: 0.0f → 0.25f", "6: 2.5f → 3.375f", "7: 1.0f → 1.5f"]),
        (Fault.SWAP, ["12: M, N → N, M", "11: x, y → y, x", "11: y, M → M, y"]),
        (Fault.LAST, ["6: 0 → 1", "3: { → { if (blockIdx.x + 1 == gridDim.x) return;"]),
        (Fault.MASK, ["7: ? → || true ?", "4: threadIdx.x >= n → (threadIdx.x >= n) && false"]),
    ],
)
def test_each_fault_is_found(fault: Fault, wanted: list[str]) -> None:
    assert changes(fault) == wanted


def test_terms_are_dropped_but_no_block_is_added() -> None:
    assert changes(Fault.TERM) == [
        "6: += → =",
        "17: += → =",
        "18: += → =",
        "18: *= → =",
        "7: - → +",
        "10: + → -",
        "7: / → *",
    ]


def test_precision_is_lost_on_the_way_in_and_out() -> None:
    inward, outward = (mutant for mutant in derive(KERNEL) if mutant.fault is Fault.PRECISION)
    assert f"static_cast<float>({COARSE}(static_cast<float>(x[i])))" in inward.text
    assert f"static_cast<T>({COARSE}(static_cast<float>(n > 3 ? sum / n : sum - 1.0f)))" in outward.text


def test_a_mutant_differs_in_one_place_and_keeps_its_lines() -> None:
    for mutant in derive(KERNEL):
        different = [a != b for a, b in zip(KERNEL.splitlines(), mutant.text.splitlines(), strict=True)]
        assert different.index(True) + 1 == mutant.line and sum(different) == 1


def test_names_tell_mutants_apart() -> None:
    names = [mutant.name for mutant in derive(KERNEL)]
    assert len(set(names)) == len(names)


def test_a_choice_has_every_fault_and_is_the_same_each_time() -> None:
    found = derive(KERNEL)
    chosen = choose(found, len(Fault))
    assert {mutant.fault for mutant in chosen} == set(Fault)
    assert chosen == choose(found, len(Fault)) and choose(found, 1000) == sorted(found, key=_place)


def _place(mutant: Mutant) -> tuple[int, str]:
    return mutant.line, mutant.name
