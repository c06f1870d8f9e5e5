"""The engine behind every HTML page: everything is escaped, a name that is not set is an error.

Pages extend `base.html.j2`, whose Content-Security-Policy admits only the style sheet and the script written into it.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES = Path(__file__).parent / "templates"


@lru_cache(maxsize=1)
def html_engine() -> Environment:
    """An engine over the templates of this package; templates are compiled once."""
    engine = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    engine.globals |= {"asset": asset, "digest": digest}
    return engine


@lru_cache
def asset(*names: str) -> str:
    """Return style sheets or scripts of ours, one after the other, to be written into a page as they are."""
    return "\n".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names)


@lru_cache
def digest(text: str) -> str:
    """Return the source expression by which a Content-Security-Policy admits exactly this style sheet or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
