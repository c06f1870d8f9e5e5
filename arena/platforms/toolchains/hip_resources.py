"""Resource use per kernel, out of what compilers print: clang's kernel-resource-usage remarks and `ptxas -v`.

A candidate can print lines of this form too (`.print` in inline assembly does). Where a kernel appears more than once,
the most of each resource stands: such lines can make a kernel look worse, and can name kernels that do not exist, but
cannot make one look better. A log that was cut at its limit says nothing about resources.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from arena.platforms.toolchains.targets import TARGETS
from arena.results.portability import KernelUse, most_used

Resources = tuple[str, tuple[KernelUse, ...]]
AMD_FLAGS = ("-Rpass-analysis=kernel-resource-usage",)
NVIDIA_FLAGS = ("-Xptxas", "-v")

_CUT = re.compile(r"\[\d+ more bytes of output dropped\]\s*\Z")
_REMARK = re.compile(
    r"^(?:[^:]*:\d+:\d+: )?remark: (?:<unknown>:0:0: )? *(?P<what>[A-Z][A-Za-z ]*?)(?: \[[\w/]+\])?: (?P<value>[\w.$]+)"
    r" \[-Rpass-analysis=kernel-resource-usage\]$"
)
_QUOTED = re.compile(r"^ *\d* \| ?")  # the source lines that clang shows below a remark
_ENTRY = re.compile(r"^ptxas info +: Compiling entry function '(?P<name>[\w.$]+)' for '\w+'$")
_PROPERTIES = re.compile(r"^ptxas info +: Function properties for (?P<name>[\w.$]+)$")
_STACK = re.compile(r"^ +\d+ bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads$")
_USED = re.compile(r"^ptxas info +: Used (?P<registers>\d+) registers(?P<rest>[\w ,.\[\]]*)$")
_SHARED = re.compile(r"(\d+) bytes smem")
_OTHER = re.compile(r"^ptxas info +: (?:\d+ bytes gmem.*|Compile time = .*)$")
_WORD_BYTES = 4
# A unified register file gives a wave its accumulators after its other vector registers, from a multiple of four.
_UNIFIED = ("gfx90a", "gfx942", "gfx950")


def short_name(symbol: str) -> str:
    """The name of a function without its types: `_ZN2ns4copyIfLi4EEvPT_` is `ns::copy`; what is not mangled stays."""
    if not symbol.startswith("_Z"):
        return symbol
    nested = symbol.startswith("_ZN")
    rest = symbol[3 if nested else 2 :]
    parts: list[str] = []
    while (length := re.match(r"L?(\d+)", rest)) and (nested or not parts):
        end = length.end() + int(length[1])
        parts.append(rest[length.end() : end])
        rest = rest[end:]
    named = [part for part in parts if not part.startswith(("_GLOBAL__N_", "_INTERNAL_"))]
    return "::".join(named) or symbol


def take_amd(log: str, arch: str) -> Resources:
    """Split clang's output into the log without its resource remarks, and what they say of each kernel."""
    kept: list[str] = []
    groups: list[dict[str, str]] = []
    below_remark = False
    for line in log.splitlines():
        remark = _REMARK.match(line)
        if remark is not None:
            below_remark = True
            if remark["what"] == "Function Name":
                groups.append({})
            if groups:
                groups[-1][remark["what"]] = remark["value"]
        elif not (below_remark and _QUOTED.match(line)):
            below_remark = False
            kept.append(line)
    # Of the functions that a kernel calls clang says no LDS size.
    uses = tuple(_amd_use(group, arch) for group in groups if {"VGPRs", "LDS Size"} <= group.keys())
    return _result(log, kept, uses)


def _amd_use(group: dict[str, str], arch: str) -> KernelUse:
    def count(*names: str) -> int:
        return next((int(group[name]) for name in names if group.get(name, "").isdigit()), 0)

    vectors, accumulators = count("VGPRs"), count("AGPRs")
    if accumulators and arch in _UNIFIED:
        vectors = -(-vectors // 4) * 4
    # What was spilled into accumulators never reaches memory: the scratch of a lane bounds it.
    spill = min(count("VGPRs Spill") * _WORD_BYTES, count("ScratchSize"))
    waves, facts = count("Occupancy"), TARGETS.get(arch)
    share = min(waves, facts.waves) / facts.waves if facts is not None and waves else None
    name = short_name(group["Function Name"])
    return KernelUse(name, vectors + accumulators, count("LDS Size"), spill, count("TotalSGPRs", "SGPRs"), share)


@dataclass
class _Entry:
    """What ptxas has said so far of one entry function."""

    name: str
    spill_bytes: int = 0
    used: list[tuple[int, int]] = field(default_factory=list)  # registers, bytes of shared memory


def take_nvidia(log: str, arch: str) -> Resources:
    """Split nvcc's output into the log without `ptxas -v`'s lines, and what they say of each kernel."""
    kept: list[str] = []
    entries: list[_Entry] = []
    about = ""
    for line in log.splitlines():
        if found := _ENTRY.match(line):
            entries.append(_Entry(found["name"]))
        elif found := _PROPERTIES.match(line):
            about = found["name"]
        elif entries and (found := _STACK.match(line)):
            if about == entries[-1].name:
                entries[-1].spill_bytes = max(entries[-1].spill_bytes, int(found["stores"]))
        elif entries and (found := _USED.match(line)):
            shared = _SHARED.search(found["rest"])
            entries[-1].used.append((int(found["registers"]), int(shared[1]) if shared else 0))
        elif not _OTHER.match(line):
            kept.append(line)
    uses = tuple(_nvidia_use(entry, used, arch) for entry in entries for used in entry.used)
    return _result(log, kept, uses)


def _nvidia_use(entry: _Entry, used: tuple[int, int], arch: str) -> KernelUse:
    registers, shared_bytes = used
    facts = TARGETS.get(arch)
    share = facts.occupancy(registers) if facts is not None else None
    return KernelUse(short_name(entry.name), registers, shared_bytes, entry.spill_bytes, occupancy=share)


def _result(log: str, kept: list[str], uses: tuple[KernelUse, ...]) -> Resources:
    text = "\n".join(kept).strip("\n")
    return (f"{text}\n" if text else ""), (() if _CUT.search(log) else most_used(uses))
