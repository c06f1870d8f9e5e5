"""What the object file of a HIP candidate may need: an allow-list of symbols, sections and libraries.

The object is the candidate's own code alone; the runtime that it is linked with may need more. What a list of names
cannot tell, such as an address worked out from a function that is allowed, is in docs/develop/isolation.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from arena.platforms.toolchains.elf import (
    EXECUTABLE,
    INDIRECT_SYMBOL,
    LIBRARY,
    LOCAL,
    OBJECT_SYMBOL,
    RELOCATABLE,
    Elf,
    ElfError,
    Section,
    Symbol,
    Tag,
)
from arena.platforms.toolchains.hip_build import ASSEMBLY_NAME, OBJECT_NAME
from arena.platforms.toolchains.hip_resources import short_name
from arena.platforms.toolchains.hip_texts import odd_names
from arena.results.messages import message

_MATH = (
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "erf"),
    *("erfc", "exp", "exp10", "exp2", "expm1", "fabs", "fdim", "floor", "fma", "fmax", "fmin", "fmod", "frexp"),
    *("hypot", "ilogb", "ldexp", "lgamma", "llrint", "llround", "log", "log10", "log1p", "log2", "logb", "lrint"),
    *("lround", "modf", "nan", "nearbyint", "nextafter", "pow", "remainder", "remquo", "rint", "round", "roundeven"),
    *("scalbln", "scalbn", "sin", "sincos", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc", "j0", "j1", "jn"),
    *("y0", "y1", "yn"),
)
_C = (
    *("memchr", "memcmp", "memcpy", "memmove", "memset", "memcpy_chk", "memmove_chk", "memset_chk", "strcat"),
    *("strchr", "strcmp", "strcpy", "strlen", "strncmp", "strncpy", "strnlen", "strrchr", "strstr", "strtod"),
    *("strtof", "strtol", "strtoll", "strtoul", "strtoull", "malloc", "calloc", "realloc", "free", "aligned_alloc"),
    *("posix_memalign", "abs", "labs", "llabs", "div", "ldiv", "lldiv", "qsort", "bsearch", "rand", "srand"),
    *("printf", "fprintf", "sprintf", "snprintf", "vprintf", "vfprintf", "vsprintf", "vsnprintf", "puts", "putchar"),
    *("fputs", "fputc", "putc", "fwrite", "fflush", "setvbuf", "perror", "stdout", "stderr"),
    *("printf_chk", "fprintf_chk", "sprintf_chk", "snprintf_chk", "vprintf_chk", "vfprintf_chk", "vsnprintf_chk"),
    *("abort", "exit", "_exit", "_Exit", "atexit", "time", "clock", "clock_gettime", "gettimeofday"),
    *("pthread_mutex_lock", "pthread_mutex_unlock", "pthread_mutex_trylock", "pthread_mutex_init"),
    *("pthread_mutex_destroy", "pthread_once"),
)
_COMPILER = (
    *("_GLOBAL_OFFSET_TABLE_", "__tls_get_addr", "__dso_handle", "__assert_fail", "__errno_location"),
    *(
        "__stack_chk_fail",
        "__libc_single_threaded",
        "_Unwind_Resume",
        "__gxx_personality_v0",
        "__pthread_key_create",
        "_Hash_bytes",
    ),
    *("hip_cpu_dynamic_shared", "__fpclassify", "__isnan", "__isinf", "__finite", "__signbit"),
)
"""What compilers and headers ask for on their own; libstdc++ asks by a weak symbol whether there are threads."""
NAMES = frozenset(
    {
        *(f"{name}{width}" for name in _MATH for width in ("", "f", "l")),
        *(f"__{name}{width}" for name in ("fpclassify", "isnan", "isinf", "finite", "signbit") for width in ("f", "l")),
        *(f"__{name}" if name.endswith("_chk") else name for name in _C),
        *_COMPILER,
    }
)
_ARITHMETIC = (
    r"__(fix|fixuns|float|floatun|extend|trunc|add|sub|mul|div|mod|udiv|umod|udivmod|divmod|neg|cmp|ucmp|eq|ne|lt|le"
    r"|gt|ge|unord|powi|popcount|parity|clz|ctz|ffs|bswap|clrsb|ashl|ashr|lshr)([hsdxtb][fic]){1,2}[2345]?"
)
"""libgcc's: numbers that the processor has no instruction for."""
_CXX = (
    r"_Zn[wa]m\w*",  # new
    r"_Zd[la]P\w*",  # delete
    r"__cxa_\w+",
    r"_ZSt\d+__throw_\w+",
    r"_ZSt9terminatev",
    r"_ZSt\d+_Rb_tree_\w+",
    r"_ZNKSt8__detail20_Prime_rehash_policy\w+",
    r"_ZSt11_Hash_bytesPKvmm",
    r"_ZNK?St7__cxx1112basic_stringI\w+",
    r"_ZNK?St7__cxx1118basic_stringstreamI\w+|_ZNK?St7__cxx1119basic_[io]stringstreamI\w+",
    r"_ZNK?St7__cxx1115basic_stringbufI\w+|_ZT[TV]NSt7__cxx1115basic_stringbufI\w+",
    r"_ZT[TV]NSt7__cxx1118basic_stringstreamI\w+|_ZT[TV]NSt7__cxx1119basic_[io]stringstreamI\w+",
    r"_ZNSt6localeC[12]Ev|_ZNSt6localeD[12]Ev|_ZTVSt15basic_streambufI\w+|_ZTVSt9basic_iosI\w+",
    r"_ZNSt8ios_base4InitC[12]Ev|_ZNSt8ios_base4InitD[12]Ev|_ZNSt8ios_baseC2Ev|_ZNSt8ios_baseD2Ev",
    r"_ZNSt9basic_iosI\w+|_ZSt4cout|_ZSt4cerr|_ZSt4endlI\w+|_ZSt5flushI\w+|_ZNSo\w+|_ZSt16__ostream_insertI\w+",
    r"_ZStlsI\w+",
    r"_ZNK?St\d+(exception|bad_alloc|logic_error|runtime_error|invalid_argument|length_error|out_of_range)[CD4]\w+",
    r"_ZT[ISV]St\d+\w+|_ZT[ISV]N10__cxxabiv1\d+__\w+_type_infoE",
    r"_ZNSt6chrono3_V21[23](system|steady)_clock3nowEv",
)
_RUNTIMES = {
    "cpu": (
        r"_Z\d+hip[A-Z]\w*",
        r"_ZN7hip_cpu(7contextE|12claim_shared|12place_shared|17use_dynamic_array|13block_barrier|14launch_threads)\w*",
        r"_ZN7hip_cpu(11note_stream|14wave_operation|5yield)\w*",
        r"_ZN7hip_cpu(17device_properties|16device_attribute|15resident_blocks|20limit_dynamic_shared)\w*",
    ),
    "nvidia": (
        r"__cuda[A-Z]\w*",
        r"cuda(?!Ipc|Library|Get(DriverEntryPoint|ExportTable)|DeviceReset|Import|ThreadExit)[A-Z]\w*",
    ),
    "amd": (
        r"__hip[A-Z_]\w*",
        r"hip(?!Ipc|Library|Module|Link|GetProcAddress|DeviceReset|Import|Drv|rtc)[A-Z]\w*",
    ),
}
"""HIP's runtime without what loads code, reaches other processes or takes the device from under the worker."""
_SECTIONS = re.compile(
    r"|\.(text|data|rodata|bss|tdata|tbss|init_array|gcc_except_table|rela?)(\..*)?"
    r"|\.(eh_frame|comment|group|symtab|strtab|shstrtab|llvm_addrsig)"
    r"|\.note\.(GNU-stack|gnu\.property)|\.nv_fatbin|\.nvFatBinSegment|\.hip_fatbin|\.hipFatBinSegment"
)
_NEEDED = re.compile(
    r"lib(c|m|gcc_s|stdc\+\+|pthread|dl|rt)\.so\.\d+|ld-linux-(x86-64|aarch64)\.so\.\d"
    r"|libamdhip64\.so\.\d+|libhip_cpu\.so"
)
# PLTRELSZ to JMPREL and the tables; not RPATH (15), TEXTREL (22), RUNPATH (29), AUDIT, FILTER and their like.
_TAGS = frozenset({*range(1, 15), 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28, 30})
_TAGS_OF_GNU = frozenset({0x6FFFFEF5, *range(0x6FFFFFF0, 0x70000000)})
_PATHS = frozenset({15, 29})  # hipcc says where ROCm's libraries are; an object has no means to
_FLAGS = 0x2 | 0x8 | 0x10  # symbolic, bound at once, thread-local at fixed offsets
_FLAGS_1 = 0x1 | 0x8  # bound at once, never unloaded
_INLINE = re.compile(r"^#APP\n(?!(?:# \d+ \".*\" 1\n[ \t]*\n# 0 \"\" 2\n)+#NO_APP$).*(?:\n.*){0,2}", re.MULTILINE)
_RAW = re.compile(r"^[^#\n\"]*(?<![\w.$@])(?:syscall|sysenter|svc|\.incbin|\.include)(?![\w.$@])", re.MULTILINE)


def broken_rules(library: Path, vendor: str) -> list[str]:
    """Return what an object file and its library have and may not, each as a message; nothing for an honest one.

    `vendor`: whose runtime it was built for, `cpu`, `nvidia` or `amd`.
    """
    try:
        own = Elf(library.with_name(OBJECT_NAME), RELOCATABLE)
        inline = _of_assembly(library.with_name(ASSEMBLY_NAME)) if vendor == "cpu" else ()
        objects = [*of_object(own, allowed_symbols(vendor)), *_of_library(Elf(library, LIBRARY), vendor)]
        return [*objects, *inline, *_of_names(library)]
    except (ElfError, OSError) as problem:
        return [message("object_unreadable", problem=problem)]


def allowed_symbols(vendor: str, *further: str) -> re.Pattern[str]:
    """Return a pattern of the functions that an object may need beside `NAMES`, with `further` alternatives."""
    return re.compile("|".join((_ARITHMETIC, *_CXX, *_RUNTIMES[vendor], *further)))


def of_object(
    own: Elf, allowed: re.Pattern[str], beside: frozenset[str] = frozenset(), sections: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Yield a message for each section and symbol of an object that it may not have.

    Args:
        own: the object file.
        allowed: the functions that it may need.
        beside: what other objects of the same candidate define for it.
        sections: what its compiler makes beside the usual ones.
    """
    yield from _of_sections(own, sections)
    yield from _of_symbols(own, allowed, beside)


def _of_names(library: Path) -> Iterator[str]:
    for name in odd_names(library):
        yield message("symbol_name_odd", name=name)


def _of_assembly(file: Path) -> Iterator[str]:
    """Where HIP is emulated, inline assembly is the processor's own; an empty one only holds the compiler up."""
    text = file.read_text(encoding="utf-8", errors="replace")
    found = _INLINE.search(text) or _RAW.search(text)
    if found is not None:
        yield message("inline_assembly", text=" ".join(found[0].split())[:80])


def _of_sections(own: Elf, further: frozenset[str]) -> Iterator[str]:
    for section in own.sections():
        if section.name not in further and not _SECTIONS.fullmatch(section.name):
            yield message("section_not_allowed", name=section.name)
        elif _is_odd(section):
            yield message("section_executable", name=section.name)


def _is_odd(section: Section) -> bool:
    """Return whether code lies where data do, or data where code does: linkers put all of `.text.*` among the code."""
    return bool(section.flags & EXECUTABLE) is not bool(re.match(r"\.text(\.|$)", section.name))


def _of_symbols(own: Elf, allowed: re.Pattern[str], beside: frozenset[str]) -> Iterator[str]:
    for symbol in own.symbols():
        name = short_name(symbol.name)
        if symbol.undefined:
            known = symbol.binding == LOCAL or symbol.name in NAMES or symbol.name in beside
            if not known and not allowed.fullmatch(symbol.name):
                yield message("symbol_not_allowed", name=name)
        elif _is_disguised(symbol):
            yield message("code_disguised", name=name)


def _is_disguised(symbol: Symbol) -> bool:
    executable = symbol.section is not None and symbol.section.flags & EXECUTABLE
    return symbol.kind == INDIRECT_SYMBOL or bool(executable and symbol.kind == OBJECT_SYMBOL)


def _of_library(built: Elf, vendor: str) -> Iterator[str]:
    allowed = _TAGS | _TAGS_OF_GNU | (_PATHS if vendor == "amd" else frozenset())
    entries = built.dynamic()
    for name in built.texts(entries, Tag.NEEDED):
        if not _NEEDED.fullmatch(name):
            yield message("library_not_allowed", name=name)
    for tag, value in entries:
        forbidden = {Tag.FLAGS: ~_FLAGS, Tag.FLAGS_1: ~_FLAGS_1}.get(Tag(tag), 0) if tag in (30, 0x6FFFFFFB) else 0
        if tag not in allowed or value & forbidden:
            yield message("dynamic_entry_not_allowed", tag=int(tag), value=value)
