"""Values must reject unstable forms: a case that reaches one, one that does not, and a clamp that hides it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from arena.checks.tasks.stability import stability_items
from arena.results.check import CheckItem, CheckOutcome
from arena.task.corpus.task_folder import load_task
from arena.task.numerics.reference import Reference
from arena.task.numerics.unstable_forms import WORDS, UnstableMode
from arena.task.rules import UNSTABLE_FORMS, RuleLevel
from tests.checks.tasks.affine import FILES, HELDOUT, TASK, Write

CASE = "- {{kind: values, M: 9, N: 40, dtype: {dtype}, fills: {{x: {x}}}}}\n"
FAR = CASE.format(dtype="float32", x="{normal_even: [0, 100]}")
MEAN = CASE.format(dtype="float32", x="{normal_even: [1000, 1]}")
LARGE = CASE.format(dtype="float16", x="{normal_even: [0, 600]}")
SOFTPLUS = "torch.nn.functional.softplus(x, threshold=200)"
BY_HAND = "(x - x.amax(-1, keepdim=True)).exp() / (x - x.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True)"
LAYER_NORM = "torch.nn.functional.layer_norm(x, x.shape[-1:])"
DEVIATION = (
    "(x - x.mean(-1, keepdim=True)) * ((x - x.mean(-1, keepdim=True)).square().mean(-1, keepdim=True) + 1).rsqrt()"
)
PRODUCT = "x * (x @ offset)[:, None]"
LONG = "- {{kind: structure, M: {rows}, N: {terms}, dtype: float16}}\n"
HALVES = [torch.float16]
RMS = "x * (x.square().mean(-1, keepdim=True) + 1).rsqrt()"


def checked(root: Path, level: RuleLevel = RuleLevel.STRICT) -> dict[str, CheckItem]:
    task = load_task(root / "triton2triton/suite/affine")
    generator = torch.Generator().manual_seed(0)
    return {item.name: item for item in stability_items(task, Reference(task.reference_path), level, generator)}


def files(body: str, case: str = "", task: str = TASK) -> dict[str, str]:
    """An affine task of `body`, with one more held-out case. Its own cases draw normal numbers."""
    reference = f"import torch\n\n\ndef reference(x, gain, offset):\n    return {body}\n"
    return {"task.yaml": task, "reference.py": reference, "heldout.yaml": HELDOUT + case}


@pytest.mark.parametrize(
    ("body", "case", "form"),
    [
        (SOFTPLUS, FAR, "softplus"),
        ("torch.softmax(x, -1)", FAR, "softmax"),
        ("torch.log_softmax(x, -1)", FAR, "logsumexp"),
        ("torch.logsumexp(x, -1, keepdim=True) + 0 * x", FAR, "logsumexp"),
        (BY_HAND, FAR, "difference"),
        ("x * torch.sigmoid(x)", FAR, "sigmoid"),
        ("torch.nn.functional.silu(x)", FAR, "sigmoid"),
        ("torch.tanh(x)", FAR, "tanh"),
        ("torch.nn.functional.gelu(x, approximate='tanh')", FAR, "tanh"),
        (LAYER_NORM, MEAN, "variance"),
        (DEVIATION, MEAN, "variance"),
        (RMS, LARGE, "square"),
        ("x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)", LARGE, "square"),
    ],
)
def test_a_case_that_reaches_the_form_is_asked_for_and_found(write: Write, body: str, case: str, form: str) -> None:
    root = write(files(body))
    found = checked(root)[f"unstable {form}"]
    assert found.outcome is CheckOutcome.FAILED
    assert WORDS[form] in found.detail and "line 5: " in found.detail and "add a case" in found.detail
    (root / "triton2triton/suite/affine/heldout.yaml").write_text(HELDOUT + case, encoding="utf-8")
    found = checked(root)[f"unstable {form}"]
    assert found.outcome is CheckOutcome.PASSED, found.detail
    assert "in heldout-06" in found.detail


def test_sums_that_are_long_enough_reject_those_in_16_bits(write: Write) -> None:
    root = write(files(PRODUCT))
    assert checked(root) == {}, "no case of 16 bits has long sums"
    cases = root / "triton2triton/suite/affine/heldout.yaml"
    few = HELDOUT + LONG.format(rows=1, terms=272)
    cases.write_text(few, encoding="utf-8")
    assert checked(root)["unstable accumulate"].outcome is CheckOutcome.FAILED
    cases.write_text(few + LONG.format(rows=33, terms=4096), encoding="utf-8")
    found = checked(root)["unstable accumulate"]
    assert found.outcome is CheckOutcome.PASSED, found.detail


def test_a_clamp_hides_the_form(write: Write) -> None:
    assert checked(write(files(f"{SOFTPLUS}.clamp(max=2.0)", FAR)))["unstable softplus"].outcome is CheckOutcome.FAILED


def test_one_reach_counts_for_its_own_line_alone(write: Write) -> None:
    two = f"{SOFTPLUS} + (\n        {SOFTPLUS.replace('(x', '(0 * x')})"
    detail = checked(write(files(two, FAR)))["unstable softplus"].detail
    assert "line 6: " in detail and "line 5: " not in detail


def test_it_is_a_strict_rule_with_exceptions(write: Write) -> None:
    root = write(files(SOFTPLUS))
    found = checked(root, RuleLevel.OWN)["unstable softplus"]
    assert found.outcome is CheckOutcome.NOT_CHECKED and found.detail.startswith("would fail at level strict: ")
    declared = f"{TASK}exceptions: {{unstable softplus: steps are at most 20}}\n"
    (root / "triton2triton/suite/affine/task.yaml").write_text(declared, encoding="utf-8")
    assert checked(root)["unstable softplus"] == CheckItem(
        "unstable softplus", CheckOutcome.DECLARED, "steps are at most 20"
    )


def test_a_reference_without_such_operations_has_no_item(write: Write) -> None:
    assert checked(write({"reference.py": FILES["reference.py"]})) == {}


def test_a_square_that_is_not_summed_has_no_other_form(write: Write) -> None:
    """Beyond float16 the output itself overflows."""
    assert checked(write(files("x.square()", LARGE))) == {}


@pytest.mark.parametrize(
    ("form", "compute"),
    [
        ("softmax", lambda x: torch.softmax(x, 1)),
        ("logsumexp", lambda x: torch.log_softmax(x, 1)),
        ("logsumexp", lambda x: torch.logsumexp(x, (0, 1))),
        ("softplus", lambda x: torch.nn.functional.softplus(x, beta=2.0)),
        ("softplus", lambda x: torch.logaddexp(x, x.flip(0))),
        ("sigmoid", lambda x: torch.sigmoid(x)),
        ("sigmoid", lambda x: x.clone().sigmoid_()),
        ("sigmoid", lambda x: torch.nn.functional.silu(x)),
        ("sigmoid", lambda x: torch.nn.functional.logsigmoid(x)),
        ("tanh", lambda x: torch.tanh(x)),
        ("tanh", lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
        ("difference", lambda x: (x[:, :, None] - x[:, None, :]).tril().exp()),
        ("difference", lambda x: torch.exp2(-2 * (x - x.amax(1, keepdim=True)).masked_fill(x > 1, 0.5))),
        ("variance", lambda x: x.var()),
        ("variance", lambda x: x.var(1, unbiased=False)),
        ("variance", lambda x: torch.var_mean(x, 1, correction=0)[0]),
        ("variance", lambda x: x.std(0, keepdim=True)),
        ("variance", lambda x: torch.nn.functional.layer_norm(x, (9,), x[0], x[1], 0.1)),
        ("variance", lambda x: (x - x.mean(1, keepdim=True)).square().mean(1)),
        ("square", lambda x: x.square().mean(1)),
        ("square", lambda x: (x**2).sum()),
        ("square", lambda x: x.norm(dim=1)),
        ("cumprod", lambda x: x.abs().cumprod(1)),
        ("expm1", lambda x: torch.expm1(x)),
        ("log1p", lambda x: x.abs().log1p()),
    ],
)
def test_a_form_is_the_same_function_where_nothing_overflows(form: str, compute: object) -> None:
    assert callable(compute)
    x = torch.randn(7, 9, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    with UnstableMode(__file__, None, HALVES) as mode:
        right = compute(x)
    chosen = next(one for one in mode.found if one.form == form)
    with UnstableMode(__file__, chosen, HALVES):
        found = compute(x)
    assert found.dtype == right.dtype
    assert not torch.equal(found, right)
    torch.testing.assert_close(found, right, rtol=2e-3 if form == "square" else 1e-4, atol=1e-5)


def test_every_form_has_words_and_a_name_for_exceptions() -> None:
    assert set(WORDS) == set(UNSTABLE_FORMS)


LONG_SUMS = torch.randn(6, 512, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x @ x.mT,
        lambda x: x @ x[0],
        lambda x: torch.einsum("mk,nk->mn", x, x),
        lambda x: torch.bmm(x[None], x.mT[None]),
        lambda x: torch.addmm(x[:, :6], x, x.mT),
        lambda x: torch.nn.functional.linear(x, x, x[0, :6]),
    ],
)
def test_a_long_sum_of_products_is_rounded_at_each_step(compute: object) -> None:
    assert callable(compute)
    with UnstableMode(__file__, None, HALVES) as mode:
        right = compute(LONG_SUMS)
    (chosen,) = mode.found
    assert chosen.form == "accumulate"
    with UnstableMode(__file__, chosen, HALVES):
        error = (compute(LONG_SUMS) - right).abs().max()
    assert 1e-3 < error < 2


@pytest.mark.parametrize(("terms", "halves"), [(256, HALVES), (512, [])])
def test_a_short_sum_or_one_of_other_formats_has_no_such_form(terms: int, halves: list[torch.dtype]) -> None:
    with UnstableMode(__file__, None, halves) as mode:
        LONG_SUMS[:, :terms] @ LONG_SUMS[:, :terms].mT
    assert not mode.found
