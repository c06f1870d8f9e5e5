"""Rewrites HIP that a C++ compiler cannot parse into calls of the HIP-on-CPU header, line by line the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from arena.platforms.toolchains.hip_scan import (
    Directives,
    check_time,
    is_namespace_scope,
    limited,
    mask,
    match_backward,
    match_forward,
    split_top_level,
    without_comments,
)

_NAME_END = re.compile(r"(?:\w|\#\#)+$")
_QUALIFIER = re.compile(r"::\s*(?:template\s+)?$")
_IMPURE = re.compile(r"\(|\+\+|--|(?<![=!<>])=(?!=)")
_SHARED = re.compile(r"\b__shared__\b")
_ALIGNMENT = re.compile(r"\b(?:__align__|alignas|__attribute__)\s*(?=\()")
_INLINE_TWICE = re.compile(
    r"\binline\b(?=(?:\s|\b(?:static|constexpr|__device__|__host__)\b)*\b__forceinline__\b)"
    r"|(?<=__forceinline__)\s+inline\b"
)
_ASSEMBLY = re.compile(r"\b(?:asm|__asm__|__asm)\b(?=(?:volatile|__volatile__|goto|inline|\s)*\()")
_UNTYPED_KERNEL = re.compile(
    r"(?P<call>\bhipLaunchKernel\s*\(\s*)"
    r"(?:\(\s*(?:const\s+)?void\s*\*\s*\)|(?:reinterpret|static)_cast\s*<\s*(?:const\s+)?void\s*\*\s*>)"
)
_EMPTY_ASSEMBLY = re.compile(r'[^(]*\(\s*"\s*"')
_VECTOR = re.compile(r"__attribute__\s*\(\(\s*(?:__)?ext_vector_type(?:__)?\s*\((?P<count>[^();]*)\)\s*\)\)")
_ALIAS = re.compile(
    r"typedef\s+(?P<old>\w(?:[\w:]|\s(?=\s*[\w:]))*?)\s+(?P<name>\w+)\s*"
    r"|using\s+(?P<new>\w+)\s*=\s*(?P<type>\w(?:[\w:]|\s(?=\s*[\w:]))*?)\s*"
)
_SPACE = " \t\r\n\\"
_READING_S = 5.0
"""processor time that a text of a mebibyte may take; an honest kernel takes some milliseconds"""
_LONGEST_ALIAS = 256
_MOST_NO_LAUNCHES = 64
"""`<<<` that begin no launch are parsed to the end of the text, so a text may have so many"""


class Edit(NamedTuple):
    """Replace `[begin, end)` of the source by `text`."""

    begin: int
    end: int
    text: str


def rewrite(text: str, name: str) -> str:
    """Return C++17 for the HIP-on-CPU header; diagnostics about it name `name` and the lines of `text`.

    Raises `TooLong` for a text that was made to keep the reader busy.
    """
    with limited(_READING_S):
        masked = mask(text)
        directives = Directives.of(masked)
        edits = [
            *_launches(text, masked, directives),
            *_shared_variables(text, masked, directives),
            *_keywords(text, masked),
            *_vectors(directives.blanked(masked)),
        ]
    return f'#line 1 "{name}"\n{_apply(text, edits)}'


def _apply(text: str, edits: list[Edit]) -> str:
    parts, at = [], 0
    for edit in sorted(edits):
        if edit.begin < at:
            continue  # inside a piece that is rewritten as a whole
        parts += [text[at : edit.begin], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def _keywords(text: str, masked: str) -> Iterator[Edit]:
    for match in re.finditer(r"\b__noinline__\b", masked):
        yield Edit(*match.span(), "__attribute__((noinline))")
    for match in _INLINE_TWICE.finditer(masked):
        yield Edit(*match.span(), _newlines(match.group()) or " ")
    for match in _UNTYPED_KERNEL.finditer(masked):  # the header needs the parameters, which the cast hides
        yield Edit(match.end("call"), match.end(), _newlines(text[match.end("call") : match.end()]) or " ")
    for match in _ASSEMBLY.finditer(masked):
        if not _EMPTY_ASSEMBLY.match(text, match.end()):
            yield Edit(match.start(), match.start(), "HIP_CPU_NO_INLINE_ASSEMBLY ")


def _vectors(code: str) -> Iterator[Edit]:
    """Rewrite the names that declarations give to clang's vectors; other uses of the attribute stay as they are."""
    for match in _VECTOR.finditer(code):
        check_time()
        begin = max(code.rfind(char, 0, match.start()) for char in ";{}") + 1
        begin += len(code[begin : match.start()]) - len(code[begin : match.start()].lstrip())
        end = code.find(";", match.end())
        text = f"{code[begin : match.start()]} {code[match.end() : max(end, 0)]}"
        declared = _ALIAS.fullmatch(text) if len(text) <= _LONGEST_ALIAS else None
        if declared is not None:
            name, element = declared["name"] or declared["new"], declared["old"] or declared["type"]
            vector = f"using {name} = ::hip_cpu::Vector<{element}, {match['count'].strip()}>"
            yield Edit(begin, end, f"{vector}{_newlines(code[begin:end])}")


def _launches(text: str, masked: str, directives: Directives) -> Iterator[Edit]:
    others = 0
    for match in re.finditer("<<<", masked):
        launch = _launch(text, masked, match.start(), directives)
        if launch is not None:
            yield launch
            continue
        others += 1
        if others > _MOST_NO_LAUNCHES:
            return  # the compiler will say what it thinks of this


def _launch(text: str, masked: str, chevrons: int, directives: Directives) -> Edit | None:
    """Rewrite `kernel<<<config>>>(arguments)` around the `<<<` at `chevrons`; None where it is not a launch."""
    end_of_piece = directives.end_of_piece(chevrons, len(masked))
    begin = _kernel_begin(masked, chevrons)
    config_end = _closing_chevrons(masked, chevrons + 3, end_of_piece)
    if begin is None or config_end is None:
        return None
    opening = config_end + 3
    while opening < end_of_piece and masked[opening] in _SPACE:
        opening += 1
    closing = match_forward(masked, opening, end_of_piece) if masked[opening : opening + 1] == "(" else None
    if closing is None:
        return None
    captures, arguments = _hoist(text, masked, opening + 1, closing)
    kernel = text[begin:chevrons]
    config = text[chevrons + 3 : config_end]
    call = f"[&{captures}]() mutable {{ {kernel}{text[config_end + 3 : opening]}({arguments}); }}"
    return Edit(begin, closing + 1, f"::hip_cpu::launch(::hip_cpu::Config({config}), {call})")


def _kernel_begin(masked: str, chevrons: int) -> int | None:
    """Return where the kernel's name begins: `ns::k`, `k<float, 4>`, `A<T>::template k<N>`, `(k)` or `k_##T`."""
    at = _skip_space_back(masked, chevrons)
    if at > 0 and masked[at - 1] == ")":
        return match_backward(masked, at - 1)
    while True:
        if at > 0 and masked[at - 1] == ">":
            opening = match_backward(masked, at - 1)
            if opening is None:
                return None
            at = _skip_space_back(masked, opening)
        name = _NAME_END.search(masked, max(0, at - 256), at)
        if name is None:
            return None
        begin = at = name.start()
        qualifier = _QUALIFIER.search(masked, max(0, at - 64), at)
        if qualifier is None:
            return begin
        at = _skip_space_back(masked, qualifier.start())
        if at == 0 or not (masked[at - 1].isalnum() or masked[at - 1] in "_>"):
            return qualifier.start()


def _skip_space_back(masked: str, at: int) -> int:
    while at > 0 and masked[at - 1] in _SPACE:
        at -= 1
    return at


def _closing_chevrons(masked: str, begin: int, end: int) -> int | None:
    check_time()
    depth = 0
    for at in range(begin, end):
        char = masked[at]
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char in ";" and depth <= 0:
            return None
        elif depth == 0 and masked.startswith(">>>", at):
            return at
    return None


def _hoist(text: str, masked: str, begin: int, end: int) -> tuple[str, str]:
    """Return lambda captures and the arguments: what has a call or side effect is evaluated once, not per thread."""
    captures, arguments = "", []
    for number, (first, last) in enumerate(split_top_level(masked, begin, end)):
        argument, shown = text[first:last], masked[first:last]
        in_place = "..." in shown or shown.lstrip(_SPACE).startswith("{") or ("," in shown and "<" in shown)
        if in_place or not _IMPURE.search(shown):
            arguments.append(argument)
            continue
        captures += f", hip_cpu_argument_{number} = ({_without_newlines(argument)})"
        arguments.append(f"hip_cpu_argument_{number}{_newlines(argument)}")
    return captures, ",".join(arguments)


def _newlines(text: str) -> str:
    """Only the line breaks of `text`, with the backslashes that continue a macro."""
    return "".join(re.findall(r"\\?\r?\n", text))


def _without_newlines(text: str) -> str:
    return re.sub(r"\\?\r?\n", " ", without_comments(text))


def _shared_variables(text: str, masked: str, directives: Directives) -> Iterator[Edit]:
    for match in _SHARED.finditer(masked):
        if re.match(r"[ \t]*#\s*define\s+__shared__", masked[masked.rfind("\n", 0, match.start()) + 1 :]):
            continue
        begin = max(masked.rfind(char, 0, match.start()) for char in ";{}") + 1
        end = _statement_end(masked, match.end(), directives.end_of_piece(match.start(), len(masked)))
        if end is None:
            continue
        if extern := re.compile(r"\bextern\b(?!\s*\")").search(masked, begin, match.start()):
            scope = is_namespace_scope(masked, match.start(), directives)
            yield Edit(extern.start(), end + 1, _dynamic_shared(text[extern.start() : end], scope))
        else:
            own_place = not is_namespace_scope(masked, match.start(), directives)
            yield from _static_shared(text, masked, begin, match, end, own_place=own_place)


def _statement_end(masked: str, begin: int, end: int) -> int | None:
    check_time()
    depth = 0
    for at in range(begin, end):
        if masked[at] in "([{":
            depth += 1
        elif masked[at] in ")]}":
            depth -= 1
        if depth < 0:
            return None
        if depth == 0 and masked[at] == ";":
            return at
    return None


def _dynamic_shared(statement: str, namespace_scope: bool) -> str:
    """Rewrite `extern __shared__ T name[]`: a pointer in a function, the runtime's own array outside."""
    code = mask(statement)
    declared = re.sub(r"\b(?:extern|static|__shared__)\b", "", _without_alignment(re.sub(r"\\?\r?\n", " ", code)))
    declared = re.sub(r"\s+", " ", declared)  # which could be shared out between the parts in many ways
    parsed = re.fullmatch(r"\s*(?P<type>.*?)\s*\b(?P<name>\w+)\s*\[\s*\](?P<rest>.*?)\s*", declared, re.DOTALL)
    if parsed is None:
        return statement + ";"
    kind, name, rest = parsed["type"], parsed["name"], parsed["rest"].strip()
    if namespace_scope:
        symbol = '__asm__("hip_cpu_dynamic_shared")'
        noted = f"[[maybe_unused]] static const bool hip_cpu_array_{name} = ::hip_cpu::use_dynamic_array();"
        return f"extern __thread {kind} {name}[]{rest} {symbol}; {noted}{_newlines(statement)}"
    pointer = f"{kind} (*{{}}){rest}" if rest else f"{kind}* {{}}"
    cast = f"static_cast<{pointer.format('').rstrip()}>(::hip_cpu::dynamic_shared())"
    return f"{pointer.format(name)} = {cast};{_newlines(statement)}"


def _without_alignment(declaration: str) -> str:
    while match := _ALIGNMENT.search(declaration):
        check_time()
        closing = match_forward(declaration, match.end(), len(declaration))
        if closing is None:
            break
        declaration = declaration[: match.start()] + " " + declaration[closing + 1 :]
    return declaration


def _static_shared(
    text: str, masked: str, begin: int, shared: re.Match[str], end: int, *, own_place: bool
) -> Iterator[Edit]:
    """Keep a `__shared__` declaration and note each of its variables when a block first comes to it.

    In a function what is declared only says the type; the variable is a reference to memory that ends at a guard page.
    """
    for static in re.compile(r"\bstatic\b").finditer(masked, begin, shared.start()):
        yield Edit(*static.span(), "")
    if repeated := re.compile(r"\s*\bstatic\b").match(masked, shared.end()):
        yield Edit(*repeated.span(), _newlines(repeated.group()))
    if alignas := re.compile(r"\s+alignas\s*(?=\()").match(masked, shared.end()):
        closing = match_forward(masked, alignas.end(), end)
        if closing is not None:
            yield Edit(shared.start(), closing + 1, f"{text[shared.end() : closing + 1].strip()} __shared__")
    notes = ""
    for number, (name, at) in enumerate(_declared_names(masked, shared.end(), end)):
        mark = f"{shared.start()}_{number}"
        if own_place and at is not None:
            typed = f"hip_cpu_type_{mark}"
            yield Edit(at, at + len(name), typed)
            notes += (
                f" static thread_local decltype({typed})& {name} = *static_cast<decltype({typed})*>("
                f"::hip_cpu::place_shared(sizeof {typed}, alignof(decltype({typed}))));"
            )
        notes += (
            f" static thread_local unsigned long hip_cpu_stamp_{mark};"
            f" [[maybe_unused]] const bool hip_cpu_entered_{mark} ="
            f" ::hip_cpu::enter_shared(hip_cpu_stamp_{mark}, (void*)&{name}, sizeof {name});"
        )
    yield Edit(end + 1, end + 1, notes)


def _declared_names(masked: str, begin: int, end: int) -> list[tuple[str, int | None]]:
    """Return the names that `T a[8], b = 0` declares, each with its place: the last name before `[`, `=` or `{`."""
    names: list[tuple[str, int | None]] = []
    for first, last in split_top_level(masked, begin, end):
        declarator = _without_alignment(masked[first:last])
        flat = re.sub(r"\{[^{}]*\}(?=\s*\w)", " ", declarator)  # the body of an unnamed struct or union
        head = re.split(r"[\[={]", flat, maxsplit=1)[0]
        found = re.search(r"(?<!\w)(\w+)\s*$", head)
        if found is not None:
            name = found.group(1)
            places = re.finditer(rf"\b{name}\b(?=\s*(?:[\[={{]|\Z))", masked[first:last])
            names.append((name, next((first + place.start() for place in places), None)))
    return names
