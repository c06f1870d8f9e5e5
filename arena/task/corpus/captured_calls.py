"""Calls that an engine or a training script made of one function, as `arena capture` writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from arena.errors import FileError


class TensorSeen(msgspec.Struct, frozen=True, tag="tensor", omit_defaults=True):
    """A tensor that was passed or returned. `strides` and `offset` in elements; None: dense."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None = None
    offset: int = 0
    mutated: bool = False
    """whether the first call of its kind changed what it holds"""


class ScalarSeen(msgspec.Struct, frozen=True, tag="scalar"):
    """A number, a text or None."""

    value: bool | int | float | str | None


class OtherSeen(msgspec.Struct, frozen=True, tag="other"):
    """Anything else, by the name of its type."""

    python_type: str


Seen = TensorSeen | ScalarSeen | OtherSeen


class CallsAlike(msgspec.Struct, frozen=True):
    """Calls whose arguments have the same shapes, dtypes, strides and scalars.

    Items of a list are `name.0`, `name.1`.
    """

    calls: int
    arguments: dict[str, Seen]
    results: tuple[Seen, ...] = ()


class CapturedCalls(msgspec.Struct, frozen=True):
    """All calls of one function, the most frequent first."""

    function: str
    device: str
    torch: str
    alike: tuple[CallsAlike, ...]

    @property
    def calls(self) -> int:
        """Return how many there were."""
        return sum(alike.calls for alike in self.alike)

    def tensors(self) -> Iterator[tuple[str, list[TensorSeen | None]]]:
        """Yield the name of each argument that was ever a tensor, with what it was in each of `alike`."""
        for name, found in self._arguments():
            if any(isinstance(value, TensorSeen) for value in found):
                yield name, [value if isinstance(value, TensorSeen) else None for value in found]

    def scalars(self) -> Iterator[tuple[str, list[bool | int | float | str | None]]]:
        """Yield the name of each argument that was a scalar in all calls, with its values in each of `alike`."""
        for name, found in self._arguments():
            scalars = [value.value for value in found if isinstance(value, ScalarSeen)]
            if len(scalars) == len(found):
                yield name, scalars

    def _arguments(self) -> Iterator[tuple[str, list[Seen | None]]]:
        for name in dict.fromkeys(name for one in self.alike for name in one.arguments):
            yield name, [one.arguments.get(name) for one in self.alike]

    def write(self, path: str | Path) -> None:
        """Write it as JSON."""
        text = msgspec.json.format(msgspec.json.encode(self), indent=1)
        Path(path).write_bytes(text + b"\n")


def read_calls(path: Path) -> CapturedCalls:
    """Read what `write` wrote. Raises `FileError` where the file is missing or is none of that."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=CapturedCalls)
    except OSError as problem:
        raise FileError(path, f"cannot be read: {problem.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise FileError(path, f"is no file of `arena capture`: {problem}") from None
