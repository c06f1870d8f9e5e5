"""Put something around functions of the judge, for tools that say where its time goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def wrap(owner: Any, name: str, around: Callable[[Function], Function]) -> None:
    """Have a function of a class or a module replaced by what `around` makes of it; a static one stays static."""
    original, static = getattr(owner, name), isinstance(vars(owner).get(name), staticmethod)
    outer = around(original)
    setattr(owner, name, staticmethod(outer) if static else outer)
