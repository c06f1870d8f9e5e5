"""How many operations PyTorch is asked for: on a GPU each is a launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def count_operations(run: Callable[[], object]) -> int:
    """Those that `run()` asks for, views and allocations included, whatever their size."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counted(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.operations = 0

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.operations += 1
            return function(*args, **(kwargs or {}))

    counted = Counted()
    with counted:
        run()
    return counted.operations
