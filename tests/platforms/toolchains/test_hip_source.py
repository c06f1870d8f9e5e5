"""The rewriter: launches, shared memory and what a C++ compiler cannot parse, line by line the same."""

from __future__ import annotations

import re
import time

import pytest

from arena.platforms.cpu.hip.source import rewrite
from arena.platforms.toolchains.hip_scan import Directives, TooLong, is_namespace_scope, mask, split_top_level


def body(text: str) -> str:
    """The rewritten text without its `#line`, spaces squeezed."""
    rewritten = rewrite(text, "kernel.hip")
    first, rest = rewritten.split("\n", 1)
    assert first == '#line 1 "kernel.hip"'
    assert rest.count("\n") == text.count("\n")
    return re.sub(r"[ \t]+", " ", rest)


def launch(config: str, call: str, captures: str = "") -> str:
    return f"::hip_cpu::launch(::hip_cpu::Config({config}), [&{captures}]() mutable {{ {call}; }})"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k<<<g, b>>>(x, n);", launch("g, b", "k(x, n)") + ";"),
        ("k<<<g, b, 0, s>>>();", launch("g, b, 0, s", "k()") + ";"),
        ("k<float, 4><<<g, b>>>(x);", launch("g, b", "k<float, 4>(x)") + ";"),
        ("k<V<float>><<<g, b>>>(x);", launch("g, b", "k<V<float>>(x)") + ";"),
        ("k<(A > 4), p->q><<<g, b>>>(x);", launch("g, b", "k<(A > 4), p->q>(x)") + ";"),
        ("a::b<int>::k<<<g, b>>>(x);", launch("g, b", "a::b<int>::k(x)") + ";"),
        ("A<T>::template k<2><<<g, b>>>(x);", launch("g, b", "A<T>::template k<2>(x)") + ";"),
        ("::k<<<g, b>>>(x);", launch("g, b", "::k(x)") + ";"),
        ("(*k)<<<g, b>>>(x);", launch("g, b", "(*k)(x)") + ";"),
        ("if (n) k<<<g, b>>>(x);", "if (n) " + launch("g, b", "k(x)") + ";"),
        ("k<<<dim3(n >> 5, f<A<B<int>>>(m)), b>>>(x);", launch("dim3(n >> 5, f<A<B<int>>>(m)), b", "k(x)") + ";"),
        ("k_##T<<<g, b>>>(x);", launch("g, b", "k_##T(x)") + ";"),
        ("k<<<g, b>>>(xs...);", launch("g, b", "k(xs...)") + ";"),
    ],
)
def test_launches(text: str, expected: str) -> None:
    assert body(text) == expected


def test_arguments_with_calls_or_effects_are_evaluated_once() -> None:
    got = body("k<<<g, b>>>(x + 4, (int)n, i++, NULL, f<a, b>(c), {1, 2});")
    captures = ", hip_cpu_argument_1 = ( (int)n), hip_cpu_argument_2 = ( i++)"
    arguments = "x + 4,hip_cpu_argument_1,hip_cpu_argument_2, NULL, f<a, b>(c), {1, 2}"
    assert got == launch("g, b", f"k({arguments})", captures) + ";"


def test_a_launch_over_many_lines_keeps_the_number_of_lines() -> None:
    got = body("k<T>\n  <<<g,\n   b>>>(x, // the input\n  f(y,\n z));\nnext();")
    assert got.splitlines()[-1] == "next();"
    assert "hip_cpu_argument_1 = ( f(y, z))" in got


def test_a_launch_in_a_macro_keeps_its_continuations() -> None:
    text = "#define L(T) \\\n  k<T><<<g, b>>>( \\\n    x, f(T), \\\n    y)\nL(float);"
    got = body(text)
    assert all(line.endswith("\\") for line in got.splitlines()[:3])
    assert got.splitlines()[-1] == "L(float);"
    assert "k<T>(" in got


@pytest.mark.parametrize(
    "text",
    [
        "// k<<<g, b>>>(x);",
        "/* k<<<g, b>>>(x); __shared__ float s[2]; */",
        'puts("k<<<g, b>>>(x); asm(\\"nop\\")");',
        'puts(R"(extern __shared__ float s[];)");',
        "int a = 1'000'000, b = a << 3;",
        "#define __shared__ nothing",
    ],
)
def test_comments_strings_and_numbers_stay(text: str) -> None:
    assert body(text) == text


def test_dynamic_shared_memory_in_a_function() -> None:
    pointer = "float* s = static_cast<float*>(::hip_cpu::dynamic_shared());"
    assert body("void k() { extern __shared__ float s[]; }") == f"void k() {{ {pointer} }}"
    got = body("void k() { extern __shared__ __align__(16)\n unsigned char raw[]; }")
    assert re.search(r"unsigned char\* raw = static_cast<unsigned char\* ?>", got)
    got = body("void k() { extern __shared__ float tile[][33]; }")
    assert "float (*tile)[33] = static_cast<float (*)[33]>" in got


def test_dynamic_shared_memory_outside_of_functions() -> None:
    for text in ("extern __shared__ float s[];", 'extern "C" { namespace a { extern __shared__ float s[];}}'):
        assert 'extern __thread float s[] __asm__("hip_cpu_dynamic_shared")' in body(text)


def test_static_shared_variables_are_noted_by_name() -> None:
    text = "__shared__ alignas(16) float a[N < 2 ? 1 : 2][3], b; static __shared__ P<int, 2>::T c;"
    got = body(text + " __shared__ union { int i; float f; } u;")
    assert re.findall(r"\(void\*\)&(\w+), sizeof (\w+)\)", got) == [(n, n) for n in ("a", "b", "c", "u")]
    assert got.startswith("alignas(16) __shared__ float a")
    assert "static __shared__" not in got


def test_keywords() -> None:
    assert body("__noinline__ void f();") == "__attribute__((noinline)) void f();"
    assert "inline __forceinline__" not in body("static inline __forceinline__ int f();")
    assert "inline" not in body("__device__ __forceinline__ inline int f();").replace("__forceinline__", "")
    assert body('asm volatile("s_nop 0");') == 'HIP_CPU_NO_INLINE_ASSEMBLY asm volatile("s_nop 0");'
    assert body('asm volatile("" ::: "memory");') == 'asm volatile("" ::: "memory");'


def test_mask_keeps_length_lines_and_continuations() -> None:
    text = "a /* x\ny */ \"b\\\"c\" 'd' // e \\\n f\n1'0"
    masked = mask(text)
    assert len(masked) == len(text)
    assert masked == "a     \n     \"    \" ' '      \\\n  \n1'0"


def test_a_literal_without_an_end_is_the_rest_of_its_line() -> None:
    """As compilers read it, in what `#if 0` skips; a search for ends from each quote would take hours."""
    assert mask("#if 0\ndon't {\\\n\" x\nint a;\n'") == "#if 0\ndon'   \\\n   \nint a;\n'"


def test_scopes() -> None:
    text = "namespace a { struct S { int x; }; void f() { if (1) { HERE } } THERE }"
    directives = Directives.of(text)
    assert not is_namespace_scope(text, text.index("HERE"), directives)
    assert is_namespace_scope(text, text.index("THERE"), directives)
    for head, inside in {
        'extern " "': True,
        "inline namespace a::b": True,
        "x; namespace\n": True,
        "f()": False,
    }.items():
        assert is_namespace_scope(f"{head} {{ HERE }}", len(head) + 3, directives) is inside


def test_commas_inside_brackets_do_not_split() -> None:
    text = "a, f(b, c), g<d, e>(h), i->j, {k, l}"
    pieces = [text[begin:end].strip() for begin, end in split_top_level(text, 0, len(text))]
    assert pieces == ["a", "f(b, c)", "g<d, e>(h)", "i->j", "{k, l}"]


@pytest.mark.parametrize(
    "text",
    [
        *(piece * 20_000 for piece in ("k<<<", 'R"a(', "//\\\n", "/*", "k<<<1>>>(")),
        f"asm{' ' * 100_000}",
        f"{'namespace ' * 20_000}!{{ extern __shared__ int a[]; }}",
        f"void f() {{ __shared__ int {'a' * 100_000}!; }}",
        f"void f() {{ extern __shared__ int{' ' * 40_000}!; }}",
    ],
)
def test_a_text_made_to_take_long_does_not(text: str) -> None:
    began = time.process_time()
    rewrite(text, "kernel.hip")
    assert time.process_time() - began < 10.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "void f() {" + "k<<<1>>>(" * 90_000 + ")" * 90_000 + "; }",
        "__shared__ " * 90_000,
        "void f() { __shared__ " + "alignas(4) " * 90_000 + "int a; }",
        "extern __shared__ int a[];" * 40_000,
    ],
    ids=["nested launches", "no end", "alignments", "dynamic arrays"],
)
def test_a_text_that_still_takes_long_is_given_up(text: str) -> None:
    began = time.thread_time()
    with pytest.raises(TooLong, match="takes too long to read"):
        rewrite(text, "kernel.hip")
    assert time.thread_time() - began < 10.0
    rewrite("void f() {}", "kernel.hip")  # which begins anew
