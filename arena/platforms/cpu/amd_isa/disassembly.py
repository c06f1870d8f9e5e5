"""Decode a code object: the text of `llvm-objdump -d` as instructions with operands, modifiers and addresses.

LLVM's own disassembler is the decoder, so encodings are not decoded twice; which program that is, the caller says.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from arena.errors import InfrastructureError

_LINE = re.compile(r"^\t(?P<text>.*?)\s*// (?P<address>[0-9A-F]{12}): (?P<words>[0-9A-F ]+?)(?: <(?P<target>.*)>)?$")
_LABEL = re.compile(r"^(?P<address>[0-9a-f]{16}) <(?P<name>.*)>:$")
_MODIFIER = re.compile(r"^[a-z][a-z_0-9]*:")
_FLAGS = {
    *("offen", "idxen", "glc", "slc", "dlc", "sc0", "sc1", "nt", "lds", "clamp", "gds", "tfe"),
    *("row_mirror", "row_half_mirror"),
}
_SUFFIX = re.compile(r"_(e32|e64|dpp|sdwa|e64_dpp)$")
_DISASSEMBLE_S = 120.0


@dataclass(frozen=True)
class Instruction:
    """One instruction as LLVM prints it."""

    text: str
    name: str
    """mnemonic without its encoding: `v_add_f32` for `v_add_f32_e32`"""
    encoding: str
    """`e32`, `e64`, `dpp`, `sdwa`, or empty"""
    operands: tuple[str, ...]
    modifiers: dict[str, str]
    """`offset` → `16`, `op_sel` → `[0,1]`; flags such as `sc0` have an empty value"""
    address: int
    size: int

    @property
    def following(self) -> int:
        """Address of the instruction after it."""
        return self.address + self.size

    def numbers(self, modifier: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """Return the values of a modifier such as `op_sel:[0,1]`, filled up from `default`."""
        if modifier not in self.modifiers:
            return default
        found = tuple(int(part) for part in self.modifiers[modifier].strip("[]").split(","))
        return found + default[len(found) :]

    def number(self, modifier: str, default: int = 0) -> int:
        """Return the value of a modifier such as `offset:16`."""
        return int(self.modifiers[modifier], 0) if modifier in self.modifiers else default


def disassemble(code_object: bytes, objdump: Path) -> dict[int, Instruction]:
    """Return the instructions of a code object by virtual address. Raises `InfrastructureError` where objdump fails."""
    with tempfile.NamedTemporaryFile(suffix=".co") as file:
        file.write(code_object)
        file.flush()
        # Not by `arena.processes.process`, which begins a session: a confined worker must not.
        command = [str(objdump), "-d", file.name]
        done = subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", timeout=_DISASSEMBLE_S, check=False
        )
    if done.returncode != 0:
        raise InfrastructureError(f"{objdump} cannot disassemble the code object: {done.stderr.strip()[:300]}")
    return {instruction.address: instruction for instruction in parse(done.stdout)}


def parse(text: str) -> list[Instruction]:
    """Return the instructions in objdump's output, in order."""
    return [_instruction(found) for found in map(_LINE.match, text.splitlines()) if found]


def _instruction(line: re.Match[str]) -> Instruction:
    size = 4 * len(line["words"].split())
    return instruction(line["text"], int(line["address"], 16), size)


def instruction(text: str, address: int = 0, size: int = 4) -> Instruction:
    """Return the instruction that LLVM prints as `text`."""
    mnemonic, _, rest = text.strip().partition(" ")
    operands: list[str] = []
    modifiers: dict[str, str] = {}
    for part in _split(rest):
        if _MODIFIER.match(part) or part in _FLAGS:
            key, _, value = part.partition(":")
            modifiers[key] = value
        else:
            operands.append(part)
    suffix = _SUFFIX.search(mnemonic)
    encoding = suffix[1] if suffix else ""
    name = mnemonic[: suffix.start()] if suffix else mnemonic
    return Instruction(text.strip(), name, encoding, tuple(operands), modifiers, address, size)


def _split(text: str) -> list[str]:
    """Split at commas and spaces outside of brackets, so that modifiers stand alone."""
    parts, depth, word = [], 0, ""
    for char in text:
        depth += (char in "[(") - (char in "])")
        if depth == 0 and char in ", ":
            if word:
                parts.append(word)
            word = ""
        else:
            word += char
    return [*parts, word] if word else parts
