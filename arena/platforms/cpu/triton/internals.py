"""The parts of the installed Triton that the mends take hold of, looked up so that a missing one is loud."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arena.errors import InfrastructureError

Array = NDArray[Any]


class Internals:
    """Triton's language, interpreter and autotuner modules, and how to replace something in them.

    Triton is untyped, hence the `Any`s. Imports triton: build one in the kernel process only.
    """

    def __init__(self) -> None:
        import triton
        import triton.language as tl
        from triton.runtime import autotuner, interpreter

        self.version: str = triton.__version__
        self.triton: Any = triton
        self.tl: Any = tl
        self.interpreter: Any = interpreter
        self.autotuner: Any = autotuner
        self.builder: Any = self.member(interpreter, "InterpreterBuilder")
        self.handle: Any = self.member(interpreter, "TensorHandle")
        self._np_dtype: Callable[[Any], np.dtype[Any]] = self.member(interpreter, "_get_np_dtype")

    def member(self, owner: Any, name: str) -> Any:
        """`owner.name`; raises `InfrastructureError` naming the version where this Triton has none."""
        if not hasattr(owner, name):
            where = getattr(owner, "__name__", type(owner).__name__)
            raise InfrastructureError(
                f"Triton {self.version} has no `{where}.{name}`, which the CPU platform mends; "
                f"install a version of Triton that it knows, or mend arena/platforms/cpu/triton"
            )
        return getattr(owner, name)

    def replace(self, owner: Any, name: str, new: Any) -> Any:
        """Put `new` where `owner.name` was, which must exist, and return the original."""
        original = self.member(owner, name)
        setattr(owner, name, new)
        return original

    def np_dtype(self, of: Any) -> np.dtype[Any]:
        """The numpy dtype that holds elements of a Triton type; a pointer is a uint64."""
        return self._np_dtype(of)

    def hold_formats(self, np_dtype: Callable[[Any], np.dtype[Any]]) -> None:
        """From now on, take numpy dtypes from `np_dtype`, everywhere in the interpreter."""
        self.replace(self.interpreter, "_get_np_dtype", np_dtype)
        self._np_dtype = np_dtype

    def tensor(self, data: Array, dtype: Any) -> Any:
        """A `tl.tensor` of scalar type `dtype` around `data`; a 0-d array becomes a scalar tensor."""
        data = np.asarray(data)
        wanted = self.np_dtype(dtype)
        if data.dtype != wanted:
            data = data.astype(wanted)
        if data.ndim == 0:
            return self.tl.tensor(self.handle(data.reshape(1), dtype), dtype)
        block = self.tl.block_type(dtype, [int(size) for size in data.shape])
        return self.tl.tensor(self.handle(data, dtype), block)

    def constant(self, value: Any) -> Any:
        """The Python value of a `tl.constexpr`, or the value itself."""
        return value.value if isinstance(value, self.tl.constexpr) else value

    def is_tensor(self, value: Any) -> bool:
        """Return whether `value` is a `tl.tensor`."""
        return isinstance(value, self.tl.tensor)
