"""Arithmetic of task files: agrees with Python where it is arithmetic, and refuses everything else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.task.expression import MAX_LENGTH, MAX_VALUE, Expression, ExpressionError

SIZES = {"M": 7, "N": 12, "eps": 0.5}


def expressions() -> st.SearchStrategy[str]:
    leaves = st.one_of(st.integers(0, 99).map(str), st.sampled_from(["M", "N", "eps", "0.25", "True"]))

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        operators = st.sampled_from(["+", "-", "*", "/", "//", "%", "==", "!=", "<", "<=", ">", ">="])
        return st.one_of(
            st.builds(lambda a, op, b: f"({a} {op} {b})", inner, operators, inner),
            st.builds(lambda a: f"(-{a})", inner),
            st.builds(lambda a: f"(not {a})", inner),
            st.builds(lambda a, b, c: f"({a} if {b} else {c})", inner, inner, inner),
            st.builds(lambda f, a, b: f"{f}({a}, {b})", st.sampled_from(["min", "max"]), inner, inner),
            st.builds(lambda a: f"abs({a})", inner),
            st.builds(lambda a, op, b: f"(0 != {a} {op} 0 != {b})", inner, st.sampled_from(["and", "or"]), inner),
        )

    return st.recursive(leaves, grow, max_leaves=8).filter(lambda text: len(text) <= MAX_LENGTH)


@settings(max_examples=150, deadline=None)
@given(expressions())
def test_agrees_with_python(text: str) -> None:
    try:
        wanted = eval(text, {"__builtins__": {}, "min": min, "max": max, "abs": abs}, dict(SIZES))
    except ArithmeticError:
        wanted = None
    if wanted is None or abs(wanted) > MAX_VALUE:
        with pytest.raises(ExpressionError):
            Expression(text).value(SIZES)
    else:
        assert Expression(text).value(SIZES) == wanted


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 10**4))
def test_functions(size: int, block: int) -> None:
    names = {"size": size, "block": block}
    assert Expression("cdiv(size, block)").integer(names) == (size + block - 1) // block
    rounded = Expression("next_power_of_2(size)").integer(names)
    assert rounded >= size and rounded & (rounded - 1) == 0 and (rounded == 1 or rounded // 2 < size)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 ** 10", 1024),
        ("2 ** 3 ** 2", 512),
        ("sqrt(16)", 4.0),
        ("log2(N - 4)", 3.0),
        ("int(7 / 2)", 3),
        ("1 < M < N", True),
        ("1 < N < M", False),
        ("M == 7 or 1 / 0", True),
        ("M != 7 and 1 / 0", False),
        ("  M * N  ", 84),
        ("0 ** 0", 1),
    ],
)
def test_values(text: str, value: float) -> None:
    assert Expression(text).value(SIZES) == value


def test_names_leave_functions_out() -> None:
    assert Expression("min(M, cdiv(N, 2)) * dtype_bytes").names == {"M", "N", "dtype_bytes"}


@pytest.mark.parametrize(
    "text",
    [
        "M.real",
        "().__class__",
        "open('x')",
        "__import__('os')",
        "eval(M)",
        "M[0]",
        "lambda: 1",
        "'M'",
        "b'M'",
        "f'{M}'",
        "1j",
        "None",
        "...",
        "[1, 2]",
        "{1: 2}",
        "[x for x in M]",
        "(x := 3)",
        "min(*M)",
        "max(M, key=N)",
        "M @ N",
        "M << 3",
        "M & N",
        "M is N",
        "M in N",
        "+M",
        "~M",
        "M;N",
        "M = 3",
        "import os",
        "",
        "M +",
        "M\0",
        "1 + " * MAX_LENGTH + "1",
    ],
)
def test_what_is_not_arithmetic_is_refused_when_written(text: str) -> None:
    with pytest.raises(ExpressionError):
        Expression(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("M // 0", "zero"),
        ("M % (M - 7)", "zero"),
        ("cdiv(M, 0)", "zero"),
        ("0 ** -1", "negative power"),
        ("M * K", "unknown name 'K'"),
        ("2 ** 65", "power"),
        ("(((((10 ** 64) ** 64) ** 64) ** 64) ** 64) ** 64", "power"),
        ("(-1) ** 0.5", "fractional power"),
        ("2 ** 62 * 4", "no sensible value"),
        ("1e308 * 10", "no sensible value"),
        ("1e308 * 10 - 1e308 * 10", "no sensible value"),
        ("sqrt(0 - 1)", "sqrt(0 - 1)"),
        ("log2(0)", "log2(0)"),
        ("min(M)", "min(M)"),
        ("abs()", "abs()"),
    ],
)
def test_what_has_no_value_is_an_expression_error(text: str, says: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        Expression(text).value(SIZES)
    assert says in str(caught.value) and text in str(caught.value)


def test_whole_numbers() -> None:
    assert Expression("N / 4").integer(SIZES) == 3
    with pytest.raises(ExpressionError, match=r"3\.5 is not a whole number"):
        Expression("M / 2").integer(SIZES)


def test_deep_nesting_has_a_value_or_an_error() -> None:
    assert Expression("-" * 300 + "M").value(SIZES) == 7
    with pytest.raises(ExpressionError):
        Expression("(" * 199 + "1" + ")" * 199 + "(")
