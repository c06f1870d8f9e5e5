# mypy: disable-error-code="no-untyped-def, misc, untyped-decorator, attr-defined"
"""Launches of the mended interpreter: memory, arguments, control flow, autotuning, and how it is installed."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from arena.errors import InfrastructureError
from arena.platforms.cpu.triton import MENDS, describe, install, installer
from arena.platforms.cpu.triton.internals import Internals
from arena.platforms.cpu.triton.launch_order import launch_order
from arena.platforms.cpu.triton.launching import GridLimit
from arena.processes.protocol import ASCENDING, DESCENDING, ENDS_ONLY, LAUNCH_ONLY

if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("needs TRITON_INTERPRET=1", allow_module_level=True)

import torch
import triton
import triton.language as tl
from triton.language import load as imported_load

install()

WIDTH = tl.constexpr(16)


@triton.jit
def double_kernel(x, n, s0, s1, R: tl.constexpr, C: tl.constexpr):
    r = tl.arange(0, R)[:, None]
    c = tl.arange(0, C)[None, :]
    at = x + r * s0 + c * s1
    tl.store(at, tl.load(at, mask=c < n) * 2, mask=c < n)


@triton.jit
def shift_kernel(source, target, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(target + i, tl.load(source + i) + 1)


@triton.jit
def imported_kernel(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, imported_load(x + i) + 1)


@triton.jit
def scalars_kernel(out, flag, small, large, unsigned, number, nothing, one):
    tl.store(out + 0, small)
    tl.store(out + 1, large)
    tl.store(out + 2, large * 2)
    tl.store(out + 3, (unsigned >> 1).to(tl.int64))
    if flag:
        tl.store(out + 4, 1)
    if nothing is None:
        tl.store(out + 5, one)
    tl.store(out + 6, number.dtype == tl.float32)


@triton.jit
def widening_kernel(out, n):
    tl.store(out + n.to(tl.int64) - 1, n)


@triton.jit(do_not_specialize=["n"])
def unspecialized_kernel(out, n):
    tl.store(out + n.to(tl.int64) - 1, n)


@triton.jit
def typed_kernel(out, n: tl.int32):
    tl.store(out + n.to(tl.int64) - 1, n)


@triton.jit
def scale_kernel(x, out, scale, N: tl.constexpr):
    i = tl.arange(0, N)
    product = tl.load(x + i) * scale
    tl.store(out + i, product - product.to(tl.float16).to(product.dtype))


@triton.jit
def grid_kernel(out):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = (x * tl.num_programs(1) + y) * tl.num_programs(2) + z
    tl.store(out + at, at * 100 + tl.num_programs(0))


@triton.jit
def turn_kernel(out, turn):
    program = (tl.program_id(0) * 3 + tl.program_id(1)) * 4 + tl.program_id(2)
    tl.store(out + tl.atomic_add(turn, 1), program)


@triton.jit
def loop_kernel(out, n, STAGES: tl.constexpr):
    for i in range(n):
        tl.store(out + i.to(tl.int64), i * 3)
    for j in tl.range(n, 2 * n, num_stages=STAGES):
        tl.store(out + j.to(tl.int64), j * 5)
    total = 0
    for k in range(0, n, 2):
        total += (k * 1073741824) // 1073741824
    tl.store(out + 2 * n, total)
    i = 0
    while (i < n) & (tl.load(out + i) < 7):
        i += 1
    tl.store(out + 2 * n + 1, i)


@triton.jit
def logic_kernel(out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    mask = i >= 2 and i < n
    tl.store(out + i, mask.to(tl.int32))
    tl.store(out + B + i, (i < 2 or i >= n).to(tl.int32))
    tl.store(out + 2 * B + i, (not mask).to(tl.int32))
    if B > 4 and n > 3:
        tl.store(out + 3 * B, 1)


@triton.jit
def block_condition_kernel(out, B: tl.constexpr):
    if tl.arange(0, B) > 1:
        tl.store(out, 1)


@triton.jit
def two_values(x):
    return x + 1, x * 2


@triton.jit
def nested_kernel(x, out):
    i = tl.arange(0, WIDTH)
    a, b = two_values(tl.load(x + i))
    tl.debug_barrier()
    tl.device_assert(a > b, "off unless debugging")
    tl.store(
        out + tl.max_contiguous(tl.multiple_of(i, 16), 16),
        tl.trans(tl.join(a, b)).reshape(2 * WIDTH)[None, :].sum(0).reshape(2, WIDTH).sum(0),
    )


@triton.autotune(
    configs=[triton.Config({"B": 64}), triton.Config({"B": 16}, num_warps=8), triton.Config({"B": 32})],
    key=["n"],
    prune_configs_by={"early_config_prune": lambda configs, args, **kw: [c for c in configs if c.kwargs["B"] < 64]},
    reset_to_zero=["out"],
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["B"] == 0})
@triton.jit
def tuned_kernel(x, out, used, n, B: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(out + i, tl.load(x + i, mask=i < n), mask=i < n)
    tl.store(used, B * 10 + EVEN)


HOOKS: list[str] = []


@triton.autotune(
    configs=[
        triton.Config({"B": 16}, pre_hook=lambda args: HOOKS.append("first")),
        triton.Config({"B": 32}, pre_hook=lambda args: HOOKS.append("second")),
    ],
    key=["n"],
    restore_value=["x"],
)
@triton.jit
def hooked_kernel(x, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


def test_an_integer_of_one_is_a_constant_as_for_the_compiler():
    out = torch.zeros(4, dtype=torch.int32)
    widening_kernel[(1,)](out, 2)
    unspecialized_kernel[(1,)](out, n=1)
    typed_kernel[(1,)](out, 1)
    assert out.tolist() == [1, 2, 0, 0]
    with pytest.raises(Exception, match="'int' object has no attribute 'to'"):
        widening_kernel[(1,)](out, 1)


def test_a_launch_with_more_arguments_than_parameters_fails():
    out = torch.zeros(4, dtype=torch.int32)
    with pytest.raises(Exception, match="takes 2 positional arguments but 3 were given"):
        widening_kernel[(1,)](out, 2, 3)


def test_views_and_overlaps_are_written_in_place():
    base = torch.arange(64.0).reshape(8, 8).clone()
    want = base.clone()
    view = base.t()[1:5, 2:6]
    want.t()[1:5, 2:6] *= 2
    double_kernel[(1,)](view, 4, *view.stride(), R=4, C=4)
    assert torch.equal(base, want)
    line = torch.arange(40.0)
    shift_kernel[(1,)](line[:32], line[8:], 32)
    assert torch.equal(line, torch.cat([torch.arange(8.0), torch.arange(32.0) + 1]))


def test_functions_imported_by_name_before_installing():
    x = torch.zeros(8)
    imported_kernel[(1,)](x, 8)
    assert torch.equal(x, torch.ones(8))


def test_shared_memory_is_written_through(tmp_path: Path):
    path = tmp_path / "buffer"
    path.write_bytes(bytes(4096))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 4096) as shared:
        x = torch.frombuffer(shared, dtype=torch.float32, count=32, offset=128)
        x.copy_(torch.arange(32.0))
        shift_kernel[(1,)](x, x, 32)
        again = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.float32)
        assert torch.equal(again[32:64], torch.arange(32.0) + 1)
        assert not again[:32].any() and not again[64:].any()
        del x


def test_scalars_get_the_compilers_types():
    out = torch.zeros(7, dtype=torch.int64)
    scalars_kernel[(1,)](out, True, -5, 2**32 - 1, 2**64 - 2, 0.5, None, 1)
    assert out.tolist() == [-5, 2**32 - 1, 2**33 - 2, 2**63 - 1, 1, 1, 1]


def test_a_float_argument_is_float32_even_beside_float16():
    x = torch.rand(16).half()
    out = torch.zeros(16)
    scale_kernel[(1,)](x, out, 0.1, 16)
    product = x.float() * torch.tensor(0.1)
    assert torch.equal(out, product - product.half().float())
    assert bool(out.any())


@pytest.mark.parametrize("grid", [(2, 3, 4), [2, 3, 4], lambda meta: (2, 3, 4)])
def test_three_dimensional_grids(grid):
    out = torch.zeros(24, dtype=torch.int32)
    grid_kernel[grid](out, num_warps=8, num_stages=3)
    assert torch.equal(out, torch.arange(24, dtype=torch.int32) * 100 + 2)


def test_programs_run_in_the_order_that_is_asked_for():
    def seen(order: int) -> list[int]:
        out, turn = torch.zeros(24, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
        with launch_order(order):
            turn_kernel[(2, 3, 4)](out, turn)
        return out.tolist()

    ascending = seen(ASCENDING)
    assert ascending == list(range(24)) == seen(DESCENDING)[::-1]
    assert seen(5) == seen(5) != seen(6)
    assert sorted(seen(5)) == ascending


@pytest.mark.parametrize("grid", [(1, 65536), (1, 1, 65536), (2**31,), lambda meta: (1, 65536)])
def test_a_grid_that_no_gpu_launches_is_an_error(grid):
    with pytest.raises(GridLimit, match="at most 2147483647 x 65535 x 65535"):
        grid_kernel[grid](torch.zeros(1, dtype=torch.int32))


def test_where_nothing_runs_a_launch_leaves_all_as_it_is():
    out = torch.zeros(24, dtype=torch.int32)
    with launch_order(LAUNCH_ONLY):
        grid_kernel[(2**31 - 1, 65535, 65535)](out)
    assert not bool(out.any())


@pytest.mark.parametrize(
    ("grid", "ran"), [((1,), [0]), ((9,), [0, 96]), ((2, 1 << 15), [0, 131080]), ((2, 3, 4), [0, 23])]
)
def test_the_first_and_the_last_program_run_alone(grid, ran):
    out, turn = torch.zeros(24, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    with launch_order(ENDS_ONLY):
        turn_kernel[grid](out, turn)
    assert out[: int(turn)].tolist() == ran


def test_a_grid_function_sees_plain_numbers():
    seen: list[Any] = []

    def grid(meta: dict[str, Any]) -> tuple[int]:
        seen.append((type(meta["n"]), meta["N"]))
        return (triton.cdiv(meta["n"], 32),)

    x = torch.zeros(64)
    shift_grid_kernel[grid](x, 64, N=32)
    assert seen == [(int, 32)] and torch.equal(x, torch.arange(64.0))


@triton.jit
def shift_grid_kernel(x, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(x + i, i.to(tl.float32), mask=i < n)


def test_loop_counters_are_tensors_and_while_loops_load():
    out = torch.zeros(18, dtype=torch.int32)
    loop_kernel[(1,)](out, 8, 3)
    assert out[:8].tolist() == [0, 3, 6, 9, 12, 15, 18, 21]
    assert out[8:16].tolist() == [5 * j for j in range(8, 16)]
    # 2 * 2**30 wraps to -2**31, 4 * 2**30 to 0: int32 counters, as compiled.
    assert out[16].item() == -4
    assert out[17].item() == 3


def test_and_or_not_work_on_blocks():
    out = torch.zeros(4, 8, dtype=torch.int32)
    logic_kernel[(1,)](out, 6, 8)
    inside = [0, 0, 1, 1, 1, 1, 0, 0]
    assert out[0].tolist() == inside
    assert out[1].tolist() == out[2].tolist() == [1 - bit for bit in inside]
    assert out[3, 0] == 1


def test_a_condition_on_a_block_is_an_error_as_on_a_gpu():
    with pytest.raises(Exception, match="ambiguous"):
        block_condition_kernel[(1,)](torch.zeros(1), 8)


def test_nested_functions_tuples_and_shape_operations():
    x, out = torch.randn(16), torch.zeros(16)
    nested_kernel[(1,)](x, out)
    torch.testing.assert_close(out, (x + 1) + (x * 2))


def test_autotuner_takes_the_first_config_that_survives_pruning():
    x, out, used = torch.randn(40), torch.ones(40), torch.zeros(1, dtype=torch.int32)
    tuned_kernel[lambda meta: (triton.cdiv(40, meta["B"]),)](x, out, used, 40)
    assert used.item() == 160
    torch.testing.assert_close(out, x)
    assert tuned_kernel.best_config.num_warps == 8


def test_autotuner_runs_every_config_once_and_then_the_first():
    x = torch.zeros(16)
    for _ in range(2):
        hooked_kernel[(1,)](x, 16)
    assert HOOKS == ["first", "second", "first", "first"]
    assert torch.equal(x, torch.full((16,), 2.0))


def test_64_programs_of_a_norm_take_well_under_a_second():
    x, out = torch.randn(64, 1024).bfloat16(), torch.zeros(64, 1024).bfloat16()
    started = time.process_time()
    norm_kernel[(64,)](x, out, 1e-6, 1024)
    assert time.process_time() - started < 0.5
    want = torch.nn.functional.rms_norm(x.float(), (1024,), eps=1e-6)
    torch.testing.assert_close(out.float(), want, rtol=1e-2, atol=1e-2)


@triton.jit
def norm_kernel(x, out, eps, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + at).to(tl.float32)
    tl.store(out + at, v * tl.rsqrt(tl.sum(v * v) / N + eps))


def test_installing_twice_is_fine_and_too_late_is_an_error(monkeypatch: pytest.MonkeyPatch):
    install()
    monkeypatch.setattr(installer, "_done", [])
    monkeypatch.delenv("TRITON_INTERPRET")
    with pytest.raises(InfrastructureError, match="TRITON_INTERPRET=1"):
        install()


def test_a_missing_internal_names_the_version():
    at = Internals()
    with pytest.raises(InfrastructureError, match=rf"Triton {triton.__version__}.*`box\.create_dot`"):
        at.replace(SimpleNamespace(__name__="box"), "create_dot", None)


def test_every_mend_is_a_module_and_in_the_documentation():
    folder = Path(installer.__file__).parent
    assert all((folder / f"{mend.module}.py").is_file() for mend in MENDS)
    page = Path(__file__).parents[3] / "docs" / "develop" / "emulation.md"
    assert describe() in page.read_text()
