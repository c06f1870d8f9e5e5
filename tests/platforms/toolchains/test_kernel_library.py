"""The headers that candidates may include."""

from __future__ import annotations

from arena.platforms.toolchains.kernel_library import headers, inlined


def test_the_headers_are_there() -> None:
    assert {"block.h", "matrix.h", "product.h"} <= headers().keys()
    assert all(text.count("#ifndef ARENA_") == 1 for text in headers().values())


def test_a_header_takes_the_place_of_its_include_and_lines_still_count() -> None:
    text = inlined('#include "task.h"\n  # include "block.h"  // sums\nint x;\n', "kernel.hip")
    assert headers()["block.h"].rstrip() in text
    assert text.startswith('#include "task.h"\n#line 1 "block.h"\n')
    assert text.endswith('\n#line 3 "kernel.hip"\nint x;\n')


def test_a_header_s_own_includes_are_put_in_too() -> None:
    text = inlined('#include "product.h"\nint x;\n', "kernel.hip")
    assert headers()["matrix.h"].rstrip() in text and '#include "matrix.h"' not in text
    assert text.startswith('#line 1 "product.h"\n') and text.endswith('\n#line 2 "kernel.hip"\nint x;\n')


def test_other_includes_stay() -> None:
    text = '#include "task.h"\n#include <block.h>\n// #include "block.h"\n#include "blocks.h"\n'
    assert inlined(text, "kernel.hip") == text


def test_many_includes_are_no_gigabytes() -> None:
    text = inlined('#include "product.h"\n' * 20_000, "kernel.hip")
    assert text.startswith('#line 1 "product.h"\n') and text.endswith('\n#include "product.h"\n')
    assert len(text) < 8 << 20
