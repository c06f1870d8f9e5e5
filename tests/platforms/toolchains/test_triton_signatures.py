"""Which launches of a Triton kernel count as the same where each signature is built once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from arena.platforms.cross.triton.pretend import signature_of

NAMES = ("x", "bias", "n", "HAS_BIAS", "BLOCK")
KERNEL = SimpleNamespace(params=[SimpleNamespace(name=name, is_constexpr=name.isupper()) for name in NAMES])
Place = Any


def told(
    x: str = "*fp16", bias: str | None = "*fp16", n: str | int = "i32", *, flag: bool = True, block: int = 64
) -> dict[str, Any]:
    """What Triton says of a launch, constants by path: None and integers that are 1 are constants to it, too."""
    constants: dict[Place, object] = {(3,): flag, (4,): block}
    if bias is None:
        constants[1,] = None
    if isinstance(n, int):
        constants[2,] = n
    kinds = (x, bias or "constexpr", n if isinstance(n, str) else "constexpr", "constexpr", "constexpr")
    return {"signature": dict(zip(NAMES, kinds, strict=True)), "constants": constants}


def test_block_sizes_and_ones_make_no_other_signature() -> None:
    assert signature_of(KERNEL, told()) == signature_of(KERNEL, told(block=128)) == signature_of(KERNEL, told(n=1))


@pytest.mark.parametrize("other", [told(x="*fp32"), told(bias=None), told(n="i64"), told(flag=False)])
def test_types_missing_arguments_and_flags_do(other: dict[str, Any]) -> None:
    assert signature_of(KERNEL, other) != signature_of(KERNEL, told())


@pytest.mark.parametrize("key", [lambda path: path[0], lambda path: NAMES[path[0]]], ids=["numbers", "names"])
def test_older_versions_say_it_otherwise(key: Any) -> None:
    for now in (told(), told(bias=None), told(n=1)):
        before = {**now, "constants": {key(path): value for path, value in now["constants"].items()}}
        assert signature_of(KERNEL, before) == signature_of(KERNEL, now)
