"""An imported problem of KernelBench keeps the interface of its module, in numbers and expressions of the sizes."""

from __future__ import annotations

import ast

import pytest

from arena.integrations.importers.kernelbench import init_arguments

SIZES = ast.parse("half = wide // 2\nkernel = (3, 5)\nloop = loop\n").body


def arguments(text: str) -> object:
    (function,) = ast.parse(f"def f():\n    eps = 0.5\n    return [{text}]\n").body
    assert isinstance(function, ast.FunctionDef)
    return init_arguments([*SIZES, *function.body], {"wide"})


def test_numbers_sizes_expressions_and_lists() -> None:
    assert arguments("wide, kernel, eps, True, half, (wide, 1)") == ("wide", [3, 5], 0.5, 1, "wide // 2", ["wide", 1])
    assert arguments("") == ()


@pytest.mark.parametrize("text", ["'same'", "None", "undefined", "wide, [[1]]", "*kernel", "loop"])
def test_other_arguments_leave_no_interface(text: str) -> None:
    assert arguments(text) is None
