"""References in shorter arithmetic, and the tolerance that follows from it."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from arena.judge.correctness.inputs import draw_inputs
from arena.judge.correctness.verify import check_outputs
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import Arguments, Arithmetic, Case, Task, Tolerance, arguments
from arena.task.numerics.arithmetic import (
    FLOAT8_SUMS,
    FLOAT32_SUMS,
    Accumulation,
    RoundedProducts,
    RoundedResults,
    rounded,
)
from arena.task.numerics.comparison import MOST_ARITHMETIC_ERROR, relative_error
from arena.task.numerics.dtypes import bounds, torch_dtype
from arena.task.numerics.reference import Reference
from tests.task.corpus.folders import write_task

EXACT_SUMS = Accumulation(1, 1000)
DECODE = TASKS / "triton2triton" / "attention" / "decode_attn_grouped_stage1"


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_rounding_is_that_of_the_dtype(name: str) -> None:
    values = torch.randn(10000, generator=torch.Generator().manual_seed(0))
    values = torch.cat([values, torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1 + 2**-9, 1 + 3 * 2**-9])])
    wanted = values.to(torch_dtype(name)).float()
    assert torch.equal(rounded(values, name).nan_to_num(nan=7.0), wanted.nan_to_num(nan=7.0))
    assert rounded(values.double(), name).dtype == torch.float64


def test_tf32_has_eleven_significant_bits_and_ties_go_to_even() -> None:
    step = 2.0**-10
    values = torch.tensor([1 + step / 2, 1 + 1.5 * step, 1 + 0.6 * step, 1e38])
    assert rounded(values, "tf32")[:3].tolist() == [1.0, 1 + 2 * step, 1 + step]
    assert float(rounded(values, "tf32")[3]) == pytest.approx(1e38, rel=2**-11)
    assert torch.equal(rounded(values, "float32"), values)


def test_operands_of_every_kind_of_product_are_rounded_and_nothing_else() -> None:
    a, b, v = torch.randn(3, 4, 5), torch.randn(3, 5, 6), torch.randn(5)
    products: dict[str, Callable[..., torch.Tensor]] = {
        "matmul": lambda a, b, v: a @ b,
        "einsum": lambda a, b, v: torch.einsum("bij,bjk->bik", a, b),
        "linear": lambda a, b, v: torch.nn.functional.linear(a[0], b[0].T, torch.ones(6)),
        "vector": lambda a, b, v: a[0] @ v,
        "dot": lambda a, b, v: torch.dot(v, v),
    }
    for name, product in products.items():
        with RoundedProducts("bfloat16", EXACT_SUMS) as mode:
            found = product(a, b, v)
        short = product(*(rounded(x, "bfloat16") for x in (a, b, v)))
        assert torch.equal(found, short) and mode.products == 1, name
        assert not torch.equal(found, product(a, b, v)), name
    with RoundedProducts("bfloat16") as mode:
        assert torch.equal(a.exp().sum(-1), a.exp().sum(-1))
        kept = a * v
    assert torch.equal(kept, a * v) and mode.products == 0


def test_sums_of_a_matrix_unit_lose_half_a_unit_in_every_step() -> None:
    assert FLOAT32_SUMS.lost(16) == 2.0**-24 and FLOAT32_SUMS.lost(28672) == 1792 * 2.0**-24
    assert FLOAT8_SUMS.lost(33) == 2 * 2.0**-14 and FLOAT8_SUMS.lost(8192) == FLOAT8_SUMS.lost(128)


def test_what_sums_lose_is_what_truncation_after_every_sixteen_products_loses() -> None:
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randn(48, 16384, generator=generator).bfloat16().double() for _ in range(2))
    sums = torch.zeros(48, 48, dtype=torch.float64)
    for at in range(0, a.shape[1], 16):
        sums += a[:, at : at + 16] @ b[:, at : at + 16].T
        unit = torch.exp2(sums.abs().log2().floor() - 23)
        sums = (sums / unit).trunc() * unit
    exact = a @ b.T
    with RoundedProducts("bfloat16"):
        modelled = a @ b.T
    truncated, model = (relative_error(found, exact) for found in (sums, modelled))
    assert model / 4 < truncated < 2 * model, "the tolerance of four times the model holds it with a margin of two"


def test_a_softmax_sees_what_sums_lose() -> None:
    a = torch.full((4, 1600), 0.25, dtype=torch.float64)
    with RoundedProducts("float32"):
        scores = a @ a.T
    assert torch.equal(scores[:, 0], scores[:, 2]) and scores[0, 0] < scores[0, 1]
    lost = FLOAT32_SUMS.lost(1600) * float(scores[0, 1])
    assert abs(float(scores.softmax(-1)[0, 1] * 4 - 1) - lost) < 0.1 * lost, "results that all lose the same cancel"


def test_sums_of_integers_lose_nothing_until_they_have_too_many_bits() -> None:
    a = torch.full((2, 64), 4.0)
    with RoundedProducts("float32", FLOAT8_SUMS):
        assert torch.equal(a @ a.T, torch.full((2, 2), 1024.0))
        assert not torch.equal((16 * a) @ (4 * a).T, torch.full((2, 2), 65536.0))
        assert not torch.equal(a @ (a / 8).T, torch.full((2, 2), 128.0))
        assert (torch.ones(3, 0) @ torch.ones(0, 2)).shape == (3, 2)


def test_results_of_every_operator_are_rounded() -> None:
    x = torch.randn(100)
    with RoundedResults("bfloat16"):
        found = x * 3 + 1
    assert torch.equal(found, rounded(rounded(x * 3, "bfloat16") + 1, "bfloat16"))


def test_the_tolerance_is_four_times_the_error_and_two_roundings() -> None:
    assert bounds(Tolerance(), "float32") == (2.0**-14, 2.0**-14 + 2.0**-23)
    assert bounds(Tolerance(), "bfloat16", 0.001) == pytest.approx((0.004, 0.004 + 2.0**-7))
    assert bounds(Tolerance(), "float16", 1e-9) == (2.0**-14, 2.0**-14 + 2.0**-10)
    assert bounds(Tolerance(atol=0.5, rtol=0.25), "float16", 0.1) == (0.5, 0.25)


def test_an_error_that_is_not_finite_widens_nothing() -> None:
    wanted = torch.tensor([1.0, 2.0, torch.inf]).double()
    assert relative_error(torch.tensor([1.0, torch.nan, 3.0]), wanted) == 0.0
    assert relative_error(torch.tensor([9.0, 2.0, torch.inf]), wanted) == MOST_ARITHMETIC_ERROR
    assert relative_error(torch.zeros(0), torch.zeros(0).double()) == 0.0


def test_what_the_output_cannot_hold_has_no_part_in_the_scale_of_an_error() -> None:
    """Nor in that of the tolerance: else an honest kernel fails where another element overflows."""
    wanted, found = torch.tensor([1e6, 1.0, 1.0]).double(), torch.tensor([1e6, 1.0, 1.01])
    assert relative_error(found, wanted) == pytest.approx(0.01 / (1e6 / 3**0.5), rel=1e-3)
    assert relative_error(found, wanted, dtype=torch.float16) == pytest.approx(0.01 / 2, rel=1e-3)
    task = load_task(TASKS / "triton2triton" / "fundamentals" / "chained_matmul")
    worked_out, reference = arguments(task, case_of(task, "float16")), Reference(task.reference_path)
    drawn = draw_inputs(worked_out, reference, 1, torch.Generator().manual_seed(3), uneven=False)
    inputs = {name: values[0] for name, values in drawn.items()}
    inputs[next(iter(inputs))][0] = 60000.0
    expected = reference(worked_out, inputs)
    (name,) = expected
    assert expected[name][0].abs().max() > torch.finfo(torch.float16).max
    error = reference.arithmetic_errors(worked_out, inputs, expected)[name]
    once = reference.in_arithmetic(worked_out, inputs, worked_out.operand_format)[name]
    assert error == relative_error(once, expected[name], MOST_ARITHMETIC_ERROR, torch.float16)
    assert error != relative_error(once, expected[name], MOST_ARITHMETIC_ERROR), "the overflow counts"


def case_of(task: Task, dtype: str) -> Case:
    return next(case for case in task.cases if case.values["dtype"] == dtype)


@pytest.mark.parametrize(
    ("dtype", "below"), [("bfloat16", "float8_e4m3fn"), ("float16", "bfloat16"), ("float32", "tf32")]
)
def test_rounded_softmax_weights_pass_in_a_float32_output_and_shorter_ones_fail(dtype: str, below: str) -> None:
    """As every serving engine computes decode attention; an output of float32 allowed 1e-4 whatever the inputs were."""
    task = load_task(DECODE)
    worked_out, reference = arguments(task, case_of(task, dtype)), Reference(task.reference_path)
    assert worked_out.operand_format == dtype
    statuses = {}
    for number_format in (dtype, below):
        drawn = draw_inputs(worked_out, reference, 1, torch.Generator().manual_seed(5), uneven=False)
        inputs = {name: values[0] for name, values in drawn.items()}
        answers = reference.in_arithmetic(worked_out, inputs, number_format)
        found = check_outputs(worked_out, reference, inputs, answers)
        statuses[number_format] = found.status
        if number_format == dtype:
            assert found.error_ratio is not None and found.error_ratio <= 0.5
    assert statuses == {dtype: Status.PASSED, below: Status.WRONG_RESULT}


def of(task: Task, dtype: str, arithmetic: Arithmetic) -> Arguments:
    return arguments(replace(task, arithmetic=arithmetic), case_of(task, dtype))


def test_the_format_of_operands_is_that_of_the_inputs_or_declared(tmp_path: Path) -> None:
    task = load_task(write_task(tmp_path))
    formats = {
        (dtype, arithmetic): of(task, dtype, arithmetic).operand_format
        for dtype in ("float16", "float32")
        for arithmetic in Arithmetic
    }
    assert formats == {
        ("float16", Arithmetic.INPUTS): "float16",
        ("float16", Arithmetic.TF32): "float16",
        ("float16", Arithmetic.FLOAT32): "float32",
        ("float32", Arithmetic.INPUTS): "float32",
        ("float32", Arithmetic.TF32): "tf32",
        ("float32", Arithmetic.FLOAT32): "float32",
        ("float16", Arithmetic.OPERATORS): "float16",
        ("float32", Arithmetic.OPERATORS): "float32",
    }
    assert of(task, "float32", Arithmetic.TF32).number_format == "tf32", "the roofline is that of the allowed rate"


def test_where_operators_may_round_their_results_pytorchs_own_arithmetic_passes() -> None:
    """The baseline of torch2hip: a product and a sigmoid, each rounded to float16."""
    task = load_task(TASKS / "hip2hip" / "modules" / "scaled_sigmoid")
    worked_out, reference = arguments(task, case_of(task, "float16")), Reference(task.reference_path)
    drawn = draw_inputs(worked_out, reference, 1, torch.Generator().manual_seed(2), uneven=False)
    inputs = {name: values[0] for name, values in drawn.items()}
    errors = {}
    for arithmetic in (Arithmetic.INPUTS, Arithmetic.OPERATORS):
        given = replace(worked_out, task=replace(task, arithmetic=arithmetic))
        errors[arithmetic] = reference.arithmetic_errors(given, inputs, reference(given, inputs))["y"]
    assert errors[Arithmetic.INPUTS] < 1e-6 and errors[Arithmetic.OPERATORS] > 1e-5


def test_rounding_every_result_is_within_the_margin_where_a_softmax_turns_it_large() -> None:
    """A few scores of about 80 in bfloat16: rounded as an operator does, the weights are off by an eighth."""
    task = load_task(TASKS / "hip2hip" / "modules" / "nonlocal_attention_gaussian")
    case = next(case for case in task.cases if case.id == "seen-03")
    worked_out = arguments(replace(task, arithmetic=Arithmetic.OPERATORS), case)
    reference, generator = Reference(task.reference_path), torch.Generator().manual_seed(54)
    inputs = {name: drawn[0] for name, drawn in draw_inputs(worked_out, reference, 1, generator).items()}
    inputs["theta_weight"] *= 32
    expected = reference(worked_out, inputs)
    assert reference.arithmetic_errors(worked_out, inputs, expected)["y"] > MOST_ARITHMETIC_ERROR / 2
    found = reference.in_arithmetic(worked_out, inputs, "bfloat16", everywhere=True)
    checked = check_outputs(worked_out, reference, inputs, {"y": found["y"].bfloat16()}, expected)
    assert checked.error_ratio is not None and checked.error_ratio < 0.51


def test_rounding_imports_no_compiler() -> None:
    """Importing it took a judge 6 s of its first evaluation."""
    program = (
        "import sys, torch\nfrom arena.task.numerics.arithmetic import RoundedProducts, RoundedResults\n"
        "with RoundedProducts('bfloat16'), RoundedResults('bfloat16'):\n    torch.ones(4, 4) @ torch.ones(4, 4)\n"
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@cache
def loaded(task: str) -> tuple[Task, Reference]:
    """A shipped task, and its reference."""
    found = load_task(TASKS / task)
    return found, Reference(found.reference_path)


def small_draw(task: str, case: str, seed: int = 0) -> tuple[Reference, Arguments, dict[str, torch.Tensor]]:
    """One draw of a case."""
    found, reference = loaded(task)
    worked_out = arguments(found, next(one for one in found.cases if one.id == case))
    drawn = draw_inputs(worked_out, reference, 1, torch.Generator().manual_seed(seed))
    return reference, worked_out, {name: values[0] for name, values in drawn.items()}


def test_few_outputs_that_happen_to_be_exact_do_not_make_the_tolerance_small() -> None:
    """Of 1,500 draws of this case six failed attention that rounds its weights before it divides by their sum."""
    plain, several = [], []
    for seed in range(60):
        reference, worked_out, inputs = small_draw("hip2hip/modules/multi_head_attention", "heldout-03", seed)
        expected = reference(worked_out, inputs)
        once = reference.in_arithmetic(worked_out, inputs, worked_out.operand_format)["y"]
        plain.append(relative_error(once, expected["y"]))
        several.append(reference.arithmetic_errors(worked_out, inputs, expected)["y"])
        assert reference.arithmetic_errors(worked_out, inputs, expected)["y"] == several[-1], "no draw is judged twice"
    assert all(more >= one for more, one in zip(several, plain, strict=True))
    assert min(several) > 2 * min(plain)
    assert statistics.median(several) < 2 * statistics.median(plain), "no more than what rounding does"


def test_other_ways_of_rounding_are_other_ways() -> None:
    """Seeds 2^32 apart were one seed on the CPU."""
    reference, worked_out, inputs = small_draw("hip2hip/modules/multi_head_attention", "heldout-03")
    found = [tuple(way["y"].flatten().tolist()) for way in reference._otherwise(worked_out, inputs)]
    assert len(set(found)) == len(found) == 4


def test_a_small_output_widens_no_other() -> None:
    """`partial_lse` has 16 elements here, and `partial` 1,024."""
    reference, worked_out, inputs = small_draw("triton2triton/attention/decode_attn_stage1", "seen-03")
    expected = reference(worked_out, inputs)
    once = reference.in_arithmetic(worked_out, inputs, worked_out.operand_format)
    errors = reference.arithmetic_errors(worked_out, inputs, expected)
    assert errors["partial"] == relative_error(once["partial"], expected["partial"])
    assert errors["partial_lse"] >= relative_error(once["partial_lse"], expected["partial_lse"])


def test_what_a_format_holds_is_not_moved() -> None:
    exact = torch.tensor([[0.0, 1.0, -2.0, 1.984375]]).T
    between = torch.tensor([[1.0], [2.0]]) * (1 + 2**-9)
    for seed in range(20):
        with RoundedProducts("bfloat16", EXACT_SUMS, seed):
            assert torch.equal(exact @ torch.ones(1, 3), exact.expand(4, 3))
    with RoundedProducts("bfloat16", EXACT_SUMS, 1):
        found = between.expand(2, 500).reshape(-1, 1) @ torch.ones(1, 1)
    steps = set((found.reshape(2, -1) / torch.tensor([[1.0], [2.0]])).flatten().tolist())
    assert steps == {1.0, 1 + 2**-7}, "either neighbour, and no other"


@pytest.mark.parametrize(
    ("task", "case", "ways"),
    [
        ("hip2hip/modules/multi_head_attention", "heldout-03", 5),
        ("hip2hip/modules/multi_head_attention", "heldout-04", 1),
        ("triton2triton/normalization/rms_norm", "heldout-01", 1),
    ],
)
def test_only_few_outputs_of_products_are_computed_in_several_ways(
    task: str, case: str, ways: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference, worked_out, inputs = small_draw(task, case)
    expected = reference(worked_out, inputs)
    inner = Mock(wraps=reference._results)
    monkeypatch.setattr(reference, "_results", inner)
    reference.arithmetic_errors(worked_out, inputs, expected)
    assert inner.call_count == ways, worked_out.case.label
