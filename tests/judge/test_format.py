"""What the task format can say beyond the shipped tasks, each through a real judge: addresses, strides, optional
inputs, scratch memory, mutable state, decisions and quantized outputs."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from arena.judge.process.client import JudgeClient
from arena.results.record import Evaluation
from arena.results.verdict import Status
from arena.task.options import Options

QUICK = Options(seeds=2, timing_budget_s=0.02)
CASES = {"seen": ["4", "8", "16", "32", "64"], "heldout": ["1", "5", "13", "48", "100"]}


def make_task(root: Path, task_type: str, name: str, yaml: str, reference: str, kernel: str, extra: str = "") -> Path:
    """A task folder with five cases of each split that differ in N; `extra` goes into every second case."""
    folder = root / "tasks" / task_type / "made" / name
    folder.mkdir(parents=True)
    head = f"name: {name}\nsummary: A task that exists for one test of the format alone.\nentry: {name}\n"
    (folder / "task.yaml").write_text(head + dedent(yaml), encoding="utf-8")
    for split, sizes in CASES.items():
        kind = "kind: scale_up, " if split == "heldout" else ""
        lines = [f"- {{{kind}N: {size}{extra if i % 2 else ''}}}" for i, size in enumerate(sizes)]
        (folder / f"{split}.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "reference.py").write_text("import torch\n\n" + dedent(reference), encoding="utf-8")
    suffix = ".py" if task_type == "triton2triton" else ".hip"
    (folder / f"kernel{suffix}").write_text(dedent(kernel), encoding="utf-8")
    return folder


def check(judge: JudgeClient, folder: Path, good: str, bad: str) -> None:
    """The kernel passes on every case; with `good` replaced by `bad` it does not."""
    kernel = next(folder.glob("kernel.*"))
    evaluation = judge.evaluate(folder, kernel, QUICK)
    assert _statuses(evaluation) == {Status.PASSED}, [case.detail for case in evaluation.cases]
    text = kernel.read_text(encoding="utf-8")
    assert good in text
    mutant = folder.parents[3] / kernel.name
    mutant.write_text(text.replace(good, bad), encoding="utf-8")
    assert judge.evaluate(folder, mutant, QUICK).status is Status.WRONG_RESULT


def _statuses(evaluation: Evaluation) -> set[Status]:
    return {evaluation.status, *(case.candidate for case in evaluation.cases)}


@pytest.mark.slow
def test_addresses_are_those_of_the_host(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    yaml = """
        axes: {N: {doc: rows, domain: [1, 1000]}}
        inputs:
          rows: {shape: [N, 8], dtype: float32, fill: normal}
          addresses: {shape: [N], dtype: int64, fill: {addresses: {of: rows, row_bytes: 32}}}
        outputs:
          gathered: {shape: [N, 8], dtype: float32, compare: exact}
        work: {flops: 0}
        precision: native
        """
    reference = """
        def reference(rows, addresses):
            return rows[addresses // 32]
        """
    kernel = """
        import triton
        import triton.language as tl


        @triton.jit
        def copy_kernel(addresses_ptr, gathered_ptr):
            row = tl.program_id(0)
            source = tl.load(addresses_ptr + row).to(tl.pointer_type(tl.float32))
            lanes = tl.arange(0, 8)
            tl.store(gathered_ptr + row * 8 + lanes, tl.load(source + lanes))


        def by_address(rows, addresses, gathered):
            copy_kernel[(rows.shape[0],)](addresses, gathered)
        """
    folder = make_task(tmp_path, "triton2triton", "by_address", yaml, reference, kernel)
    check(cpu_judge, folder, "tl.load(source + lanes)", "tl.load(source + 7 - lanes)")


@pytest.mark.slow
def test_a_decision_is_judged_by_its_regret(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    yaml = """
        axes: {N: {doc: rows, domain: [1, 1000]}}
        inputs:
          scores: {shape: [N, 16], dtype: float32, fill: normal}
        outputs:
          best: {shape: [N], dtype: int64, compare: {decision: {atol: 1.0e-5}}}
        work: {flops: 16 * N}
        """
    reference = """
        def reference(scores):
            return scores.argmax(dim=1)


        def regret(scores, best):
            chosen = scores.gather(1, best.clamp(0, 15)[:, None])[:, 0]
            return {"best": scores.max(dim=1).values - chosen}
        """
    kernel = """
        import triton
        import triton.language as tl


        @triton.jit
        def best_kernel(scores_ptr, best_ptr):
            row = tl.program_id(0)
            scores = tl.load(scores_ptr + row * 16 + tl.arange(0, 16))
            tl.store(best_ptr + row, tl.argmax(scores, axis=0).to(tl.int64))


        def choose(scores, best):
            best_kernel[(scores.shape[0],)](scores, best)
        """
    folder = make_task(tmp_path, "triton2triton", "choose", yaml, reference, kernel)
    check(cpu_judge, folder, "tl.argmax", "tl.argmin")


@pytest.mark.slow
def test_strides_optional_inputs_scratch_and_state_in_hip(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    yaml = """
        axes: {N: {doc: size, domain: [1, 1000]}}
        inputs:
          x: {shape: [N, 3], strides: [5, 1], dtype: float32, fill: normal}
          bias: {shape: [N], dtype: float32, fill: normal, optional: true}
          state: {shape: [N], dtype: float32, fill: normal, mutable: true}
          scale: {scalar: float32, value: 2.0}
        outputs:
          y: {shape: [N], dtype: float32}
        work: {flops: 5 * N}
        """
    reference = """
        def reference(x, bias, state, scale):
            total = scale * x.sum(dim=1) + (0 if bias is None else bias)
            return total, state + total
        """
    kernel = """
        #define ARENA_WORKSPACE
        #include "task.h"

        extern "C" size_t mixed_workspace(int64_t N) { return N * sizeof(float); }

        __global__ void sums(const float* x, float* total, int64_t N) {
            const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
            if (i < N) total[i] = x[i * 5] + x[i * 5 + 1] + x[i * 5 + 2];
        }

        __global__ void finish(const float* total, const float* bias, float* state, float scale, float* y, int64_t N) {
            const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
            if (i >= N) return;
            y[i] = scale * total[i] + (bias ? bias[i] : 0.0f);
            state[i] += y[i];
        }

        extern "C" hipError_t mixed(const float* x, const float* bias, float* state, float scale, float* y, int64_t N,
                                    void* workspace, hipStream_t stream) {
            const dim3 blocks((N + 63) / 64), threads(64);
            sums<<<blocks, threads, 0, stream>>>(x, (float*)workspace, N);
            finish<<<blocks, threads, 0, stream>>>((const float*)workspace, bias, state, scale, y, N);
            return hipGetLastError();
        }
        """
    folder = make_task(tmp_path, "hip2hip", "mixed", yaml, reference, kernel, extra=", scale: 0.5, omit: [bias]")
    check(cpu_judge, folder, "state[i] += y[i]", "state[i] -= y[i]")


@pytest.mark.slow
def test_one_code_step_off_is_allowed_to_a_quantization(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    yaml = """
        axes: {N: {doc: rows, domain: [1, 1000]}}
        inputs:
          x: {shape: [N, 256], dtype: float32, fill: normal}
        outputs:
          codes: {shape: [N, 256], dtype: int8, compare: quantized}
        work: {flops: 256 * N}
        precision: float32
        """
    reference = """
        def reference(x):
            return torch.clamp(torch.round(x * 32), -128, 127).to(torch.int8)
        """
    kernel = """
        import triton
        import triton.language as tl


        @triton.jit
        def quantize_kernel(x_ptr, codes_ptr):
            at = tl.program_id(0) * 256 + tl.arange(0, 256)
            scaled = tl.load(x_ptr + at) * 32
            rounded = tl.floor(scaled + 0.5)
            tl.store(codes_ptr + at, tl.minimum(tl.maximum(rounded, -128), 127).to(tl.int8))


        def quantize(x, codes):
            quantize_kernel[(x.shape[0],)](x, codes)
        """
    folder = make_task(tmp_path, "triton2triton", "quantize", yaml, reference, kernel)
    check(cpu_judge, folder, "tl.floor(scaled + 0.5)", "tl.floor(scaled)")
