"""Headers that HIP candidates may include, put into their text before any compiler sees it.

Inlined, since the CPU platform rewrites a candidate's own text, and no include path can then be wrong.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

OFFERS = {
    "block.h": "`block_sum`, `block_max` and `over_block`: reductions over the threads of a one-dimensional block",
    "matrix.h": "`matrix::load`, `multiply_accumulate`, `store`: products of 16 × 16 tiles by matrix units (MFMA, "
    "WMMA, mma.sync), for 16-bit and 8-bit floats",
    "product.h": "`product` and `linear`: a whole matrix product, tiled in shared memory, with matrix units where an "
    "operand has 16 bits",
}
"""what a header is for, by its name"""
_FOLDER = Path(__file__).parent
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([\w.]+)"[^\n]*$', re.MULTILINE)
_MOST_HEADERS = 64


def headers() -> dict[str, str]:
    """Every header of the library by the name under which it is included."""
    return dict(_headers())


def inlined(text: str, name: str) -> str:
    """A text with the library's headers in it, and theirs; line numbers still count in the file called `name`.

    Includes after the first `_MOST_HEADERS` stay as they are: a mebibyte of them would be gigabytes of headers.
    """
    left = _MOST_HEADERS

    def replace(found: re.Match[str]) -> str:
        nonlocal left
        header = _headers().get(found[1])
        if header is None or not left:
            return found[0]
        left -= 1
        line = text.count("\n", 0, found.start()) + 2
        return f'#line 1 "{found[1]}"\n{inlined(header, found[1]).rstrip()}\n#line {line} "{name}"'

    return _INCLUDE.sub(replace, text)


@cache
def _headers() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(_FOLDER.glob("*.h"))}
