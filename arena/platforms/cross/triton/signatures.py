"""One build for each signature of a kernel: the types of its arguments, which of them are missing, and its flags.

What differs in block sizes, in alignment or in the number of warps alone is not built again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Hook = Callable[..., bool | None]


def build_each_once() -> None:
    """From now on, and in this whole process, a launch whose signature has been built is passed over."""
    seen: set[object] = set()

    def passed_over(*, fn: Any, compile: Mapping[str, Any], is_manual_warmup: bool, **_: object) -> bool | None:
        """Triton's question before it compiles: True leaves the launch out."""
        if is_manual_warmup:
            return None  # whoever asks for the kernel itself must get it
        signature = (fn.name, signature_of(fn.jit_function, compile))
        if signature in seen:
            return True
        seen.add(signature)
        return None

    _install(passed_over)


def signature_of(kernel: Any, compile: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Each argument and what is kept of it: a type, `None`, or the value of a flag; nothing of a constant integer.

    `kernel` is a `JITFunction`, `compile` what Triton tells its hooks. An integer that Triton takes for a constant,
    since it is 1, is one of the type `i32`.
    """
    names = [parameter.name for parameter in kernel.params]
    declared = {parameter.name for parameter in kernel.params if parameter.is_constexpr}
    constants = {_argument(place, names): value for place, value in compile["constants"].items()}
    kept = []
    for name, kind in compile["signature"].items():
        value = constants.get(name)
        if name not in constants:
            kept.append((name, str(kind)))
        elif type(value) is not int:
            kept.append((name, str(value)))
        elif name not in declared:
            kept.append((name, "i32"))
    return tuple(kept)


def _argument(place: Any, names: list[str]) -> str:
    """The name behind a key of `constants`: by version of Triton a path, a number or a name."""
    first = place[0] if isinstance(place, tuple) else place
    return names[first] if isinstance(first, int) else str(first)


def _install(hook: Hook) -> None:
    from triton import knobs

    knobs.runtime.jit_cache_hook = hook
