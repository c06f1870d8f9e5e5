"""Says what a failed HIP-on-CPU build means: which names of HIP the header does not provide."""

from __future__ import annotations

import re

_ERROR = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<what>.*)$", re.MULTILINE)
_UNDECLARED = (
    re.compile(r"'(?:::)?(?P<name>\w+)' was not declared in this scope"),
    re.compile(r"there are no arguments to '(?P<name>\w+)' that depend on a template parameter"),
    re.compile(r"'(?:::)?(?P<name>\w+)' has not been declared"),
    re.compile(r"'(?P<name>\w+)' does not name a type"),
    re.compile(r"'(?P<name>\w+)' is not a member of '(?:hip_cpu|cooperative_groups|cg)'"),
    re.compile(r"(?P<name>[\w./-]+): No such file or directory"),
    re.compile(r"(?P<name>inline assembly) for a GPU"),
)
# A misspelt name of the candidate's own is the candidate's mistake; these belong to HIP or to a GPU's headers.
_OF_A_GPU = re.compile(
    r"__\w+|hip[A-Z_]\w*|(?:unsafe|safe)?[aA]tomic[A-Z]\w*|make_[a-z]+\d+|h2?(?:exp|log|sqrt)\w*"
    r"|(?:hip|rocwmma|rocprim|hipcub|ck|cub|thrust|cuda)\b[\w./-]*|cuda[A-Z_]\w*"
    r"|inline assembly|grid_group|coalesced_\w+|this_grid"
)


def explain(log: str) -> str:
    """Return the log; where names of HIP were unknown, its last line says so, with file and line of the first."""
    first = ""
    missing: list[str] = []
    for error in _ERROR.finditer(log):
        name = _missing_name(error["what"])
        if name is None or name in missing:
            continue
        first = first or f"{error['file']}:{error['line']}"
        missing.append(name)
    if not missing:
        return log
    names = ", ".join(f"`{name}`" for name in missing)
    verdict = f"{first}: the HIP-on-CPU header does not provide {names}; this may still build for a GPU target"
    return f"{log.rstrip()}\n{verdict}\n"


def _missing_name(what: str) -> str | None:
    for pattern in _UNDECLARED:
        found = pattern.search(what)
        if found is not None and _OF_A_GPU.fullmatch(found["name"]):
            return found["name"]
    return None
