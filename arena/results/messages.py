"""The catalogue of messages that authors of candidates and of tasks get: data, and how a detail is made from it.

Judge, workers and checks write details by `message`; `arena explain` and docs/contribute/messages.md print the entries.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from arena.results.verdict import Status


class MessageSection(StrEnum):
    """Where in an evaluation a message arises, or in the check of a task."""

    COMPILE = "compile"
    RUN = "load and run"
    CORRECTNESS = "correctness"
    PERFORMANCE = "performance"
    TARGETS = "other GPUs"
    CHECK = "arena tasks check"
    HARNESS = "harness"


@dataclass(frozen=True)
class Message:
    """One entry. `text` names its values in braces; `todo` is what to do next, in a few words."""

    section: MessageSection
    statuses: tuple[Status, ...]
    title: str
    text: str
    why: str
    todo: str

    @property
    def values(self) -> frozenset[str]:
        """The names of the values that `text` needs."""
        return frozenset(name for _, name, _, _ in string.Formatter().parse(self.text) if name)

    @property
    def template(self) -> str:
        """Return the text for a reader: its values described, or by their names in capitals."""
        parts = string.Formatter().parse(self.text)
        return "".join(before + (PLACEHOLDERS.get(name, name.upper()) if name else "") for before, name, _, _ in parts)


def message(code: str, /, **values: object) -> str:
    """Return the detail for a code: what happened, what to do next, and the code in brackets.

    Args:
        code: a key of `MESSAGES`.
        values: exactly the values that its text names.

    Raises:
        KeyError: there is no such code, or a value is missing.
    """
    entry = MESSAGES[code]
    said = entry.text.format(**values).strip()
    if "\n" in said:
        return f"{said}\n{NEXT}{entry.todo} [{code}]"
    return f"{said}{ADVICE}{entry.todo} [{code}]"


def within(context: str, detail: str, /, **values: object) -> str:
    """Return a detail of `message` with where it arose in front.

    Args:
        context: a key of `CONTEXTS`.
        detail: what `message` returned.
        values: what the text of the context names besides.
    """
    return CONTEXTS[context].format(detail=detail, **values)


def code_of(detail: str) -> str:
    """Return the code that a detail ends in, or an empty string: details of old records have none."""
    found = _CODE.search(detail)
    return found[1] if found is not None and found[1] in MESSAGES else ""


def bare(detail: str) -> str:
    """Return a detail without what to do next and without its code: to be the value of another message.

    What to do next is what follows the last separator: records may hold other words for it than the catalogue.
    """
    code = code_of(detail)
    if not code:
        return detail
    text = detail.removesuffix(f" [{code}]")
    separator = f"\n{NEXT}" if f"\n{NEXT}" in text else ADVICE
    return text.rpartition(separator)[0].rstrip() or text


def for_terminal(detail: str, *, told: bool = False) -> str:
    """Return a detail for a person: each code once, as the command that explains it; none where it was `told`."""
    lines, seen = [], set[str]()
    for line in detail.splitlines():
        code = code_of(line)
        if code:
            line = line.removesuffix(f" [{code}]")
            line += "" if told or code in seen else f" (arena explain {code})"
            seen.add(code)
        lines.append(line)
    return "\n".join(lines)


def leading_to(status: Status) -> dict[str, Message]:
    """Return the messages that come with a status."""
    return {code: entry for code, entry in MESSAGES.items() if status in entry.statuses}


def item_of(name: str) -> str:
    """Return the key of `ITEMS` for an item of `arena tasks check`, or an empty string where it is none.

    Names of a task stand for capitals: `reach of M` is `reach of AXIS`, and `x matters` is `INPUT matters`.
    """
    for pattern, item in _NAMED_ITEMS.items():
        if name not in ITEMS and re.fullmatch(pattern, name):
            return item
    return name if name in ITEMS else ""


def by_section() -> Iterator[tuple[MessageSection, dict[str, Message]]]:
    """Yield every section with its messages, in the order of an evaluation."""
    for section in MessageSection:
        yield section, {code: entry for code, entry in MESSAGES.items() if entry.section is section}


PLACEHOLDERS = {
    "log": "<what the compiler, Triton or the runtime printed, with line numbers of your file>",
    "signatures": "<the declaration that is expected, and below it the one that was found>",
    "elements": "<how many elements, from where to where; for the worst its index, got, expected and tolerance>",
    "output": "<name of the output>",
    "problem": "<the error, in one line>",
    "printed": "<; it printed: its last lines>",
    "nearest": "<the argument that is nearest>",
    "detail": "<what was wrong>",
    "ignored": "<the input, and the outputs that do not depend on it>",
    "survivors": "<each fault that passed, by line and change>",
    "places": "<file:line of each>",
    "intervals": "<95 % interval of each case>",
}
"""what `arena explain` shows for values that are texts; others are shown by their names in capitals"""
NEXT = "Next: "
ADVICE = "; "
"""how the last line of a detail of several lines begins"""
_CODE = re.compile(r" \[([a-z][a-z0-9_]*)\]$")
_RULE, _CRASH, _TIMING = (Status.RULE_VIOLATION,), (Status.CRASH,), (Status.TIMING_MISMATCH,)
_WRONG, _FAST = (Status.WRONG_RESULT,), (Status.IMPLAUSIBLE,)
_NO_VERDICT = (Status.HARNESS_ERROR,)
_OBJECT = "Code from outside the candidate's file would be measured as the candidate's own."
_LAST_LINES = "The last lines that it printed are shown; a failure ends the evaluation."
_COMPARED = "Every output must equal the reference within the tolerance of the task, for each secret seed."

CONTEXTS: dict[str, str] = {
    "in_timing": "in a timed run: {detail}",
    "in_sampled_rows": "in {rows} sampled rows of {of}: {detail}",
    "in_case": "{case}: {detail}",
    "in_build": "for {dtypes}: {detail}",
    "in_file": "{file}: {detail}",
    "of_kernel": "{status}: {detail}",
    "of_case": "{case} ({label}): {status}: {detail}",
    "only_at_strict": "would fail at level strict: {detail}",
    "in_machine_code": "{detail} ({case})",
}
"""texts that stand in front of a detail and say where it arose"""

MEANINGS: dict[Status, str] = {
    Status.PASSED: "every check held",
    Status.COMPILE_ERROR: "the compiler or Triton rejects the file",
    Status.LOAD_ERROR: "the file cannot be imported or loaded, or its entry is missing or takes other arguments",
    Status.LAUNCH_ERROR: "the entry raised, returned an error code, or left one on the device",
    Status.WRONG_RESULT: "an output is outside its tolerance, or was not written",
    Status.NONDETERMINISTIC: "the same inputs gave a right and a wrong output",
    Status.INPUT_MUTATED: "an input changed that the task does not declare mutable",
    Status.OUT_OF_BOUNDS: "memory outside of the arguments was written",
    Status.TIMING_MISMATCH: "the outputs are right, but the timing cannot be trusted, so that it earns no speedup",
    Status.IMPLAUSIBLE: "the outputs are right, but the timing is faster than possible, so that it earns no speedup",
    Status.TIMEOUT: "a compiler or a call took longer than its limit",
    Status.CRASH: "the candidate's process ended before it answered",
    Status.OUT_OF_MEMORY: "an allocation failed, or the process took more memory than its limit",
    Status.RULE_VIOLATION: "the candidate does what its task type forbids",
    Status.WAVE_SIZE_DEPENDENT: "right at one wave size and wrong at another",
    Status.NOTHING_SUBMITTED: "the agent handed in no candidate",
    Status.NOT_RUN: "of a case: an earlier stage or case failed, so that this one was not reached; of machine code: "
    "the emulator lacks an instruction, so that nothing is known",
    Status.HARNESS_ERROR: "the harness or the machine failed, which says nothing about the candidate",
}
"""each status for a reader of `arena explain`"""

ITEMS: dict[str, tuple[str, ...]] = {
    "finished": ("check_unfinished",),
    "kinds": ("check_few_kinds",),
    "timed cases": ("check_timed_cases",),
    "axes vary": ("check_axis_constant", "check_scalar_constant"),
    "small cases": ("check_few_small_cases",),
    "unlike others": ("check_duplicate",),
    "exceptions": ("check_exception_unneeded",),
    "reference": ("check_reference_failed", "check_reference_varies"),
    "outputs vary": ("check_output_constant", "check_output_near_zero"),
    "tolerance": ("check_trick_accepted",),
    "INPUT matters": ("check_input_ignored",),
    "OUTPUT ignores INPUTS": ("check_input_ignored",),
    "independent": ("check_rows_dependent",),
    "drawn at once": ("check_inputs_drawn_singly",),
    "arithmetic": ("check_arithmetic",),
    "well conditioned": ("check_ill_conditioned",),
    "work": ("check_bytes_wrong", "check_bytes_over_arguments", "check_bytes_uncounted"),
    "operations": ("check_operations_wrong",),
    "kernel": ("check_no_kernel",),
    "builds": ("compiler_refused", "triton_refused", "wrong_signature", "compiler_timed_out"),
    "correct": ("output_wrong", "output_not_written", "bytes_changed_outside", "wrong_at_wave_size"),
    "margin": ("check_margin",),
    "expert": ("output_wrong", "compiler_refused", "triton_refused"),
    "builds for TARGET": ("target_not_compiled", "target_timed_out", "target_compiler_missing", "target_not_reached"),
    "machine code for TARGET": ("machine_code_fault", "instruction_unknown"),
    "mutants": ("check_mutants_survive", "check_mutants_declared", "check_mutants_unbuilt", "check_mutants_no_kernel"),
    "omissions": ("check_mutants_survive", "check_no_numbers"),
    "A/A": ("check_self_differs", "check_self_no_case"),
    "headroom": ("check_no_headroom", "check_headroom_unknown"),
    "pace": ("check_kernel_slow",),
    "long enough": ("check_cases_short",),
    "reach of AXIS": ("check_axis_reach",),
    "CPU reach of AXIS": ("check_axis_reach_cpu",),
    "sizes of AXIS": ("check_axis_sizes",),
    "tiles of AXIS": ("check_axis_tiles",),
    "held-out cases": ("check_few_heldout",),
    "held-out kinds": ("check_few_kinds",),
    "production case": ("check_kind_missing",),
    "scale_up case": ("check_kind_missing",),
    "long structural case": ("check_no_long_case",),
    "offsets of TENSOR": ("check_offset_reach",),
    "values case": ("check_no_fills",),
    "unread memory": ("check_unread_needed",),
    "unstable FORM": ("check_unstable_form",),
    "domain of INPUT": ("check_domain_reach", "check_domain_left"),
    "harness": ("check_no_verdict",),
}
"""items of `arena tasks check`, each with the messages that it fails with; capitals stand for names of a task"""
_NAMED_ITEMS = {
    r"reach of \w+": "reach of AXIS",
    r"CPU reach of \w+": "CPU reach of AXIS",
    r"domain of \w+": "domain of INPUT",
    r"offsets of \w+": "offsets of TENSOR",
    r"sizes of \w+": "sizes of AXIS",
    r"tiles of \w+": "tiles of AXIS",
    r"unstable \w+": "unstable FORM",
    r"\S+ matters": "INPUT matters",
    r"\S+ ignores .+": "OUTPUT ignores INPUTS",
    r"builds for \w+": "builds for TARGET",
    r"machine code for \w+": "machine code for TARGET",
}

MESSAGES: dict[str, Message] = {
    # Compile: before the candidate runs.
    "file_too_large": Message(
        MessageSection.COMPILE,
        _RULE,
        "a large file",
        "{file} has {found} bytes; a kernel file may have {allowed}",
        "Compilers and checks take longer for longer files, and a kernel needs no more.",
        "shorten the file",
    ),
    "too_many_braces": Message(
        MessageSection.COMPILE,
        _RULE,
        "parsing would take too long",
        "{place}: the text has {found} braces; a kernel needs no more than some thousands",
        "Python copies the rest of an f-string at each brace, so that parsing would take minutes.",
        "shorten the text",
    ),
    "import_not_allowed": Message(
        MessageSection.COMPILE,
        _RULE,
        "a forbidden import",
        "{place}: imports `{name}`; torch, triton, numpy, einops and Python's standard library may be imported, "
        "pybind11 and ninja for their folders",
        "An imported library could compute the result in place of the candidate.",
        "remove the import",
    ),
    "foreign_compiler": Message(
        MessageSection.COMPILE,
        _RULE,
        "PyTorch would compile another kernel",
        "{place}: `{name}` compiles kernels other than the ones in this file",
        "Only kernels in the candidate's file are measured as its work.",
        "write that kernel in the file",
    ),
    "extension_not_built": Message(
        MessageSection.COMPILE,
        (Status.COMPILE_ERROR,),
        "no extension",
        "the extension `{name}` is not built: at most {most} of a module are, for NVIDIA GPUs, before the first case",
        "CUDA C++ runs on no other platform, and no compiler runs while a device is in use.",
        "use --platform cuda",
    ),
    "include_not_allowed": Message(
        MessageSection.COMPILE,
        _RULE,
        "an include of a kernel library",
        "{place}: includes `{name}`, a library of kernels",
        "A library could compute the result in place of the candidate.",
        "write the kernel yourself",
    ),
    "header_not_allowed": Message(
        MessageSection.COMPILE,
        _RULE,
        "an undocumented header",
        "the compiler was made to read `{file}`, no documented header; task.h, block.h, matrix.h, product.h, <hip/...> "
        "and the standard headers of C and C++ are",
        _OBJECT,
        "include documented headers only",
    ),
    "assembler_read_file": Message(
        MessageSection.COMPILE,
        _RULE,
        "the assembler read a file",
        "the assembler was made to read `{file}`; a kernel brings all its code itself",
        _OBJECT,
        "remove the directive that reads it",
    ),
    "symbol_not_allowed": Message(
        MessageSection.COMPILE,
        _RULE,
        "a forbidden function",
        "`{name}` may not be used; HIP's runtime API, C's math, memory and printing functions and C++'s containers may",
        "Other functions reach files, processes or libraries that compute in place of the candidate.",
        "replace the call",
    ),
    "section_not_allowed": Message(
        MessageSection.COMPILE,
        _RULE,
        "an unusual section in the object file",
        "the kernel file puts something into the section `{name}`, which no kernel needs",
        _OBJECT,
        "remove the section attribute",
    ),
    "section_executable": Message(
        MessageSection.COMPILE,
        _RULE,
        "code and data are mixed",
        "of all sections .text alone is executable, and always; of the kernel file's, `{name}` is not so",
        _OBJECT,
        "leave sections to the compiler",
    ),
    "code_disguised": Message(
        MessageSection.COMPILE,
        _RULE,
        "data lies where code belongs",
        "`{name}` is data in an executable section, or a function that the loader resolves (`ifunc`)",
        "The linker and the loader would run or skip this code without a call that the judge sees. Attributes such as"
        " section or ifunc cause it.",
        "define it as a plain function",
    ),
    "library_not_allowed": Message(
        MessageSection.COMPILE,
        _RULE,
        "a forbidden library",
        "the library `{name}` may not be linked",
        "A library could compute the result in place of the candidate.",
        "remove the directive that links it",
    ),
    "dynamic_entry_not_allowed": Message(
        MessageSection.COMPILE,
        _RULE,
        "unusual linker instructions",
        "the dynamic entry {tag:#x} ({value:#x}) of the library is none that a kernel needs",
        _OBJECT,
        "remove linker directives",
    ),
    "inline_assembly": Message(
        MessageSection.COMPILE,
        _RULE,
        "inline assembly of the CPU",
        "inline assembly of the processor may not be used (`{text}`): no GPU runs it",
        "On the CPU platform HIP is emulated, and assembly would leave the emulation.",
        "write it in C++",
    ),
    "symbol_name_odd": Message(
        MessageSection.COMPILE,
        _RULE,
        "a symbol name contains assembly",
        "a section or symbol is called `{name}`, which the assembler would read as more than a name",
        _OBJECT,
        "use plain names",
    ),
    "object_unreadable": Message(
        MessageSection.COMPILE,
        _RULE,
        "the compiled kernel cannot be read",
        "the compiled kernel cannot be read: {problem}",
        "The judge checks the object file that the compiler wrote.",
        "leave its format to the compiler",
    ),
    "compiler_refused": Message(
        MessageSection.COMPILE,
        (Status.COMPILE_ERROR,),
        "the compiler reports an error",
        "{log}",
        "Nothing can be run or timed before the file compiles.",
        "correct the first error",
    ),
    "wrong_signature": Message(
        MessageSection.COMPILE,
        (Status.COMPILE_ERROR, Status.LOAD_ERROR),
        "the entry has another signature",
        "{signatures}",
        "Arguments are passed by position, as the task declares them.",
        "take the expected parameters, in order",
    ),
    "compiler_timed_out": Message(
        MessageSection.COMPILE,
        (Status.TIMEOUT,),
        "the compiler takes too long",
        "the compiler did not end within {allowed_s:.0f} s{printed}",
        "Compilation counts against the time of an evaluation.",
        "unroll or instantiate less",
    ),
    "triton_refused": Message(
        MessageSection.COMPILE,
        (Status.COMPILE_ERROR,),
        "Python or Triton rejects the file",
        "{log}",
        "Triton compiles a kernel when it is first launched, and the smallest seen case is launched for that.",
        "correct the line that is named",
    ),
    "wave_size_not_built": Message(
        MessageSection.COMPILE,
        (Status.WAVE_SIZE_DEPENDENT,),
        "the file compiles at one wave size only",
        "compiles for waves of {first} threads, but not of {other}: {log}",
        "A kernel for NVIDIA (32) and AMD (64) GPUs must not depend on the number of threads in a wave.",
        "use warpSize, no constant",
    ),
    "judge_failed_twice": Message(
        MessageSection.COMPILE,
        _CRASH,
        "the judge fails with this candidate",
        "the judge failed twice with this candidate, and not with the baseline",
        "A judge that works with the baseline and not with the candidate was brought down by the candidate.",
        "remove what is not kernel code",
    ),
    # Load and run: the candidate's own process.
    "load_failed": Message(
        MessageSection.RUN,
        (Status.LOAD_ERROR,),
        "the file cannot be loaded",
        "{log}",
        "The entry function must exist with the declared name once the file is imported or its library loaded.",
        "correct the import or the entry",
    ),
    "kernel_refuses": Message(
        MessageSection.RUN,
        (Status.LAUNCH_ERROR,),
        "the kernel refuses the case",
        "{log}",
        "The kernel's own code raised an error. That is honest about its range, but every case is to be computed.",
        "compute it too, if slowly",
    ),
    "returns_other_tensors": Message(
        MessageSection.RUN,
        (Status.WRONG_RESULT,),
        "a module returns other tensors",
        "forward returned {found}; expected {expected}",
        "What a module returns is copied into the outputs, without a cast.",
        "return what is expected",
    ),
    "launch_failed": Message(
        MessageSection.RUN,
        (Status.LAUNCH_ERROR,),
        "the call raised or returned an error",
        "{log}",
        "An entry that raises, returns an error code or leaves one on the device has no result.",
        "correct the call that failed",
    ),
    "gluon_not_emulated": Message(
        MessageSection.RUN,
        (Status.LAUNCH_ERROR,),
        "a Gluon kernel on the CPU",
        "`{kernel}` is a Gluon kernel, and the CPU platform runs Triton's language alone",
        "Gluon names layouts and instructions of one GPU, which the interpreter does not have.",
        "evaluate on a GPU, or use `triton.language`",
    ),
    "pytorch_computes": Message(
        MessageSection.RUN,
        _RULE,
        "PyTorch computes in a Triton candidate",
        "{operator} of PyTorch was called: PyTorch may allocate, fill, view and copy, and Triton kernels compute",
        "A result that PyTorch computes is no result of the kernels; few integers may be, for launches.",
        "compute in the kernel, launch sizes in Python",
    ),
    "pytorch_copies_to_output": Message(
        MessageSection.RUN,
        _RULE,
        "PyTorch writes to an output",
        "a copy of PyTorch's into an argument: outputs and mutable inputs are written by Triton kernels only",
        "A copy could hand in a result that no kernel of the candidate computed.",
        "write the output in the kernel",
    ),
    "copies_to_cpu": Message(
        MessageSection.RUN,
        _RULE,
        "a call copies data to the CPU",
        "{copied} bytes of device memory were copied to the host in one call; at most {allowed} may be",
        "On the CPU platform Python could compute in place of the kernel.",
        "compute in Triton kernels",
    ),
    "rule_broken": Message(
        MessageSection.RUN,
        _RULE,
        "a forbidden call",
        "{log}",
        "Results count only if the candidate's kernels compute them.",
        "compute on the device",
    ),
    "device_memory_full": Message(
        MessageSection.RUN,
        (Status.OUT_OF_MEMORY,),
        "an allocation failed",
        "{log}",
        "The inputs and outputs of a case take part of the memory, and no more than the rest is free.",
        "allocate less",
    ),
    "memory_limit": Message(
        MessageSection.RUN,
        (Status.OUT_OF_MEMORY,),
        "too much memory on the CPU side",
        "{used_gib:.1f} GiB of memory, at most {allowed_gib:.1f} GiB is allowed",
        "A candidate that takes the whole memory of the machine would stop the judge.",
        "allocate less CPU memory",
    ),
    "thread_limit": Message(
        MessageSection.RUN,
        _CRASH,
        "too many processes and threads",
        "{used} processes and threads, at most {allowed} are allowed",
        "Threads of a candidate compete with the judge's clock.",
        "start no threads",
    ),
    "disk_limit": Message(
        MessageSection.RUN,
        _CRASH,
        "too much written to disk",
        "it wrote {used_gib:.1f} GiB of files; at most {allowed_gib:.1f} GiB are allowed",
        "A full disk would stop the judge.",
        "write no files",
    ),
    "folder_unreadable": Message(
        MessageSection.RUN,
        _CRASH,
        "files that cannot be counted",
        "it wrote a folder that cannot be read; at most {allowed_gib:.1f} GiB of files are allowed",
        "What cannot be counted could fill the disk.",
        "write no files",
    ),
    "not_watched": Message(
        MessageSection.RUN,
        _CRASH,
        "a worker cannot be watched",
        "what it takes cannot be measured: {problem}",
        "A process of which nobody knows the memory could take all of it.",
        "start no processes, write no files",
    ),
    "no_answer": Message(
        MessageSection.RUN,
        (Status.TIMEOUT,),
        "a call takes too long",
        "no answer from the candidate's process within {allowed_s:.0f} s",
        "A kernel that does not end would occupy the device for ever.",
        "find the endless loop or barrier",
    ),
    "ended_by_signal": Message(
        MessageSection.RUN,
        _CRASH,
        "a signal ended the process",
        "the candidate's process was ended by {signal}{printed}",
        _LAST_LINES,
        "find the invalid access on the CPU side",
    ),
    "exited": Message(
        MessageSection.RUN,
        _CRASH,
        "the process exited by itself",
        "the candidate's process exited with code {code}{printed}",
        _LAST_LINES,
        "remove the exit",
    ),
    "connection_closed": Message(
        MessageSection.RUN,
        _CRASH,
        "the process closed its connection",
        "the candidate's process closed its connection to the judge{printed}",
        _LAST_LINES,
        "leave file descriptors alone",
    ),
    "answer_invalid": Message(
        MessageSection.RUN,
        _CRASH,
        "the process answered out of order",
        "the candidate's process sent the judge what no unchanged process sends: {problem}",
        "The code around the candidate answers the judge; who changes or imitates it could fake results.",
        "leave file descriptors alone",
    ),
    "instruction_unknown": Message(
        MessageSection.TARGETS,
        (Status.NOT_RUN,),
        "the machine code cannot be emulated",
        "{log}",
        "The emulator of AMD machine code lacks an instruction or a runtime function.",
        "run it on such a GPU",
    ),
    "machine_code_fault": Message(
        MessageSection.TARGETS,
        _WRONG,
        "machine code does what GPUs forbid",
        "{log}",
        "The compiled machine code was executed on the CPU, and accessed memory or registers wrongly.",
        "correct the access that is named",
    ),
    # Correctness: seen and held-out cases.
    "output_wrong": Message(
        MessageSection.CORRECTNESS,
        _WRONG,
        "an output is outside its tolerance",
        "{output}: {elements}",
        _COMPARED,
        "compare with the reference there",
    ),
    "output_not_written": Message(
        MessageSection.CORRECTNESS,
        _WRONG,
        "part of an output was not written",
        "{output}: {elements}",
        "Outputs hold unlikely values before each call; an element that still has its own was not written.",
        "write every element",
    ),
    "timed_output_not_written": Message(
        MessageSection.CORRECTNESS,
        _WRONG,
        "a timed call skipped output elements",
        "{output}: a timed call did not write all of it",
        "Every timed call has fresh inputs and must compute all of its outputs.",
        "remove what skips or remembers calls",
    ),
    "input_changed": Message(
        MessageSection.CORRECTNESS,
        (Status.INPUT_MUTATED,),
        "an input was changed",
        "input {name} was changed",
        "Only inputs that the task declares mutable may be written.",
        "write to outputs or scratch memory",
    ),
    "bytes_changed_outside": Message(
        MessageSection.CORRECTNESS,
        (Status.OUT_OF_BOUNDS,),
        "a write out of bounds",
        "{count} bytes outside every argument changed{nearest}",
        "Secret bytes around every argument show a write past its end or before its start.",
        "mask the last block",
    ),
    "not_deterministic": Message(
        MessageSection.CORRECTNESS,
        (Status.NONDETERMINISTIC,),
        "right and wrong for the same inputs",
        "right once, then with the same inputs: {detail}",
        "A race or state that outlives a call makes a result right by chance.",
        "find the race, or state between calls",
    ),
    "wrong_in_order": Message(
        MessageSection.CORRECTNESS,
        _WRONG,
        "right only where blocks ascend",
        "right where blocks and programs run in ascending order, wrong in {order} order: {detail}",
        "A GPU runs blocks in any order, so the CPU platform has an order for each draw. Two blocks that write one "
        "element, or a missing barrier, make the result depend on it.",
        "let one thread write each element",
    ),
    "wrong_at_wave_size": Message(
        MessageSection.CORRECTNESS,
        (Status.WAVE_SIZE_DEPENDENT,),
        "right at one wave size only",
        "right at wave size {right}; at {wrong}, {status}: {detail}",
        "A kernel for NVIDIA (32) and AMD (64) GPUs must not depend on the number of threads in a wave.",
        "use warpSize, no constant",
    ),
    # Performance: seen and held-out cases.
    "wrote_after_end": Message(
        MessageSection.PERFORMANCE,
        _WRONG,
        "outputs changed after a timed run",
        "outputs of a timed run changed after the candidate's process had said that it was over",
        "Work that goes on after the clock has stopped would be free.",
        "finish all work on the given stream",
    ),
    "below_roofline": Message(
        MessageSection.PERFORMANCE,
        _FAST,
        "faster than the hardware allows",
        "{found_ms:.4g} ms a call is under the roofline of {limit_ms:.4g} ms, the least time for the declared work",
        "Bytes and operations that the task declares cannot be done faster at the peaks of this device.",
        "remove what skips work",
    ),
    "below_empty_kernel": Message(
        MessageSection.PERFORMANCE,
        _FAST,
        "faster than an empty kernel",
        "{found_ms:.4g} ms a call is under half of what a kernel without work takes, {limit_ms:.4g} ms",
        "A call that launches anything takes at least about as long as an empty kernel.",
        "launch the work in the call",
    ),
    "work_deferred": Message(
        MessageSection.PERFORMANCE,
        _FAST,
        "many calls cost far less than one",
        "{many_ms:.4g} ms a call in a timed run of {calls} calls, {single_ms:.4g} ms for a call alone",
        "A call is timed alone and among many. If it is far cheaper among many, calls were skipped, merged or put off.",
        "do a call's work in it",
    ),
    "prepares_too_long": Message(
        MessageSection.PERFORMANCE,
        _TIMING,
        "getting ready takes too long",
        "the candidate's process takes {took_ms:.4g} ms to get ready for a timed run of {calls} calls; "
        "{allowed_ms:.4g} ms are allowed, by what the baseline takes",
        "Before a timed run the candidate's process is told to get ready: to map its inputs, and to capture its calls"
        " in a graph. The clock does not run then, and the inputs are already there. Work that is done then would be "
        "free, so that it may take little more than the baseline takes.",
        "begin no work before the call",
    ),
    "busy_after_run": Message(
        MessageSection.PERFORMANCE,
        _TIMING,
        "the device stays busy after a timed run",
        "the device is busy for {found_ms:.4g} ms longer than after the baseline's timed runs; {allowed_ms:.4g} ms are "
        "allowed",
        "The judge waits until the device is idle after the candidate's last call. Work on another stream goes on "
        "after the clock has stopped: it would be free, and would slow the baseline down.",
        "launch all work on the given stream",
    ),
    "short_run_padded": Message(
        MessageSection.PERFORMANCE,
        _TIMING,
        "short timed runs cost too much",
        "timed runs cost {found_ms:.4g} ms besides their calls, over what the baseline's cost; at most "
        "{allowed_ms:.4g} ms more are expected",
        "Each case is timed in a short run of few calls and a long run of many. The latency is the difference of "
        "their times, divided by the difference of their calls, so that fixed costs cancel. Work in every run but in "
        "no call would cancel too, and a longer short run makes calls seem cheaper.",
        "make every call cost the same",
    ),
    "time_not_accounted": Message(
        MessageSection.PERFORMANCE,
        _TIMING,
        "timed runs take unexplained time",
        "a timed run takes {found_ms:.4g} ms more than its calls should, over what the baseline's runs do; at most "
        "{allowed_ms:.4g} ms more are expected",
        "The latency of a call times the number of calls should be what a run takes, with the same fixed cost as the "
        "baseline's. Time is left over here: some calls were slow, or work ran before or after the calls. Other "
        "programs on the machine cause it too.",
        "make calls alike, or repeat on an idle machine",
    ),
    "planning_differs": Message(
        MessageSection.PERFORMANCE,
        _TIMING,
        "calls were slower before they were timed",
        "a call took {before_ms:.4g} ms when the number of timed calls was chosen, {timed_ms:.4g} ms when timed",
        "Some untimed calls decide how many calls are timed, so that a run takes long enough. They were much slower "
        "than the timed ones: the kernel compiles, tunes or remembers something in its first calls. Too few calls "
        "were timed for the latency to be right.",
        "tune in the first call, and keep no results",
    ),
    "clocks_disagree": Message(
        MessageSection.PERFORMANCE,
        _TIMING,
        "two clocks disagree",
        "{process_ms:.4g} ms a call by the clock of the candidate's process, {judge_ms:.4g} ms by the judge's; "
        "they may differ by {allowed:.0%}",
        "The candidate's process and the judge time the same calls, each with its own clock. A process that changes "
        "or skips its clock shows a difference.",
        "leave clocks and synchronisation alone",
    ),
    "baseline_moved": Message(
        MessageSection.PERFORMANCE,
        _TIMING,
        "the baseline's speed changed",
        "the baseline takes {beside_ms:.4g} ms beside this candidate, {alone_ms:.4g} ms alone; "
        "it may take {allowed:.0%} more",
        "The judge times the task's baseline alone, and once more in turn with the candidate. The two should agree. A"
        " candidate that leaves work on the device or the CPU slows the baseline down, and would seem faster. "
        "Changing clocks or other programs cause it too.",
        "leave no work behind, or repeat on an idle machine",
    ),
    "ran_while_stopped": Message(
        MessageSection.PERFORMANCE,
        _TIMING,
        "the candidate ran while stopped",
        "the candidate's process took {found_ms:.3g} ms of processor time while it was stopped; "
        "{allowed_ms:.3g} ms are allowed",
        "The candidate is stopped while the baseline is timed, so that it cannot slow it down.",
        "start no processes or threads",
    ),
    "scheduling_changed": Message(
        MessageSection.PERFORMANCE,
        _TIMING,
        "processors or priorities were changed",
        "the process of the {program} was given {found}",
        "The judge chooses processors and priorities, alike for baseline and candidate.",
        "change no affinity or priority",
    ),
    # Other GPUs: no gate.
    "target_not_compiled": Message(
        MessageSection.TARGETS,
        (),
        "it does not compile for this GPU",
        "{log}",
        "It is no gate: a candidate may be right and fast here and not portable.",
        "use portable intrinsics",
    ),
    "target_timed_out": Message(
        MessageSection.TARGETS,
        (),
        "that compiler takes too long",
        "the compiler did not end within {allowed_s:.0f} s",
        "Each target has the same limit as a call.",
        "unroll or instantiate less",
    ),
    "target_compiler_missing": Message(
        MessageSection.TARGETS,
        (),
        "no compiler for this GPU",
        "{problem}",
        "Whether the candidate compiles for this GPU is not known here.",
        "see `arena doctor`",
    ),
    "target_launches_nothing": Message(
        MessageSection.TARGETS,
        (),
        "no Triton kernel was launched",
        "the candidate launched no Triton kernel for {target}",
        "Triton compiles what is launched, so that nothing was compiled for this GPU.",
        "launch it on every GPU",
    ),
    "target_not_reached": Message(
        MessageSection.TARGETS,
        (),
        "nothing was compiled for this GPU",
        "{built} of {asked} cases were compiled for {target}",
        "A build for a GPU counts if every case compiles for it.",
        "see the other messages",
    ),
    # arena tasks check: rules over a definition.
    "check_unfinished": Message(
        MessageSection.CHECK,
        (),
        "lines still say TODO",
        "{count} lines say TODO: {places}",
        "`arena tasks new` marks with TODO what only the author can say. The place of each such line is listed.",
        "answer them",
    ),
    "check_few_kinds": Message(
        MessageSection.CHECK,
        (),
        "too few kinds of held-out cases",
        "held-out cases are of {found} kinds ({kinds}), at least {least} are needed",
        "A kind of held-out case is one way in which a kernel may be tuned to the seen cases: sizes, edges, "
        "alignment, dtypes, values. A report compares kernels by kind.",
        "add other kinds",
    ),
    "check_timed_cases": Message(
        MessageSection.CHECK,
        (),
        "too few or too many timed cases",
        "{found} {split} cases say `timed: true`; expected {least} to {most}",
        "The speedup of a task is the geometric mean over its timed cases. One case is no mean, and many cases only "
        "cost time on a GPU.",
        "mark production sizes",
    ),
    "check_axis_constant": Message(
        MessageSection.CHECK,
        (),
        "an axis never changes",
        "axis {axis} is {value} in every case, though its domain is {domain}",
        "A kernel could compile the value in as a constant, be right in every case, and wrong elsewhere in the domain.",
        "vary it",
    ),
    "check_scalar_constant": Message(
        MessageSection.CHECK,
        (),
        "a scalar never changes",
        "scalar {name} is {value} in every case",
        "A kernel could compile the value in as a constant, be right in every case, and wrong for another.",
        "vary it in a case",
    ),
    "check_few_small_cases": Message(
        MessageSection.CHECK,
        (),
        "too few cases for the CPU",
        "{found} {split} cases are small enough for the CPU ({limit:.0e} operations plus bytes held), "
        "at least {least} are needed",
        "The CPU platform emulates a GPU and runs only cases of little work. Without small cases nobody can check a "
        "kernel without a GPU.",
        "add small, odd cases",
    ),
    "check_duplicate": Message(
        MessageSection.CHECK,
        (),
        "another task is the same",
        "is {other} under another name",
        "The same problem twice counts twice in every mean over tasks.",
        "name what differs, or remove one",
    ),
    "check_axis_reach": Message(
        MessageSection.CHECK,
        (),
        "cases end far below the domain",
        "{axis} is at most {greatest}, its domain ends at {high}",
        "The domain promises that kernels are right up to its end, but no case comes close to it. Faults such as "
        "32-bit offsets show only there.",
        "add a larger case",
    ),
    "check_offset_reach": Message(
        MessageSection.CHECK,
        (),
        "no case is that large",
        "{name} may span {most} elements by the domain, and no case has one of more than {least}",
        "Offsets of 32 bits end at 2³¹ elements. A kernel that computes them so is right in every smaller case.",
        "add a `large` case, or narrow the domain",
    ),
    "check_axis_reach_cpu": Message(
        MessageSection.CHECK,
        (),
        "cases for the CPU end low",
        "{axis} is at most {greatest} where the CPU platform runs a case; at least one must have {least} or more",
        "Kernels are often right up to a fixed size alone. A case with one long axis finds that without a GPU.",
        "lengthen that axis in a case",
    ),
    "check_axis_sizes": Message(
        MessageSection.CHECK,
        (),
        "sizes without a case",
        "no case for the CPU platform has the sizes {sizes} of {axis}",
        "A kernel may be written for some of the sizes that an axis lists, and for no other.",
        "add small cases",
    ),
    "check_axis_tiles": Message(
        MessageSection.CHECK,
        (),
        "every size fills its tiles",
        "no case for the CPU platform has an odd multiple of {sizes} as {axis}",
        "A kernel that masks tiles by the length of shorter ones is wrong there alone.",
        "add a small case",
    ),
    "check_domain_reach": Message(
        MessageSection.CHECK,
        (),
        "numbers end far below the domain",
        "{name} is {reached} where the CPU platform runs a case; at least one must draw {wanted}",
        "What no case draws may be computed in any way: a sign may be taken for granted, and sums may overflow.",
        "add `fills`, or declare `domain`",
    ),
    "check_domain_left": Message(
        MessageSection.CHECK,
        (),
        "numbers beyond the domain",
        "{name} is {reached}, its domain is [{low}, {high}]",
        "A kernel may rely on the domain that it is told.",
        "correct either",
    ),
    "check_few_heldout": Message(
        MessageSection.CHECK,
        (),
        "too few held-out cases",
        "{found} held-out cases, at least {least} are needed",
        "Held-out cases show whether a kernel is right and fast on sizes that its author never saw. Few of them show "
        "little.",
        "add held-out cases",
    ),
    "check_kind_missing": Message(
        MessageSection.CHECK,
        (),
        "a missing kind of case",
        "no held-out case is of the kind {kind}",
        "Kernels that were tuned to the seen sizes lose most on sizes of production and on larger ones.",
        "add one",
    ),
    "check_no_long_case": Message(
        MessageSection.CHECK,
        (),
        "no long `edge`, `dtype` or `structure` case",
        "no held-out case of the kind {kinds} takes 20 µs or more on an H200",
        "A kernel may treat edges by a slow path. Its cost is measurable only where the call takes longer than a "
        "launch.",
        "add a larger one",
    ),
    "check_unread_needed": Message(
        MessageSection.CHECK,
        (),
        "unread memory matters",
        "with NaN in what `unread` of reference.py names, the answers differ in case {case}",
        "The judge writes NaN to what is unread, and every right kernel would fail.",
        "name less",
    ),
    "check_no_fills": Message(
        MessageSection.CHECK,
        (),
        "no case with other values",
        "no held-out case has `fills` of its own",
        "Each input is drawn from one distribution. A kernel may be wrong for other values, such as large ones whose "
        "exponentials overflow.",
        "add `fills` to one",
    ),
    "check_unstable_form": Message(
        MessageSection.CHECK,
        (),
        "an unstable form is accepted",
        "no case makes `{words}` wrong by {least:g} times the tolerance in each draw; it reached {reached}",
        "The reference computed an operation in this form, and its outputs were close to the right ones. "
        "A kernel that overflows, cancels or loses digits in other cases would be accepted.",
        "add a case that reaches it",
    ),
    "check_exception_unneeded": Message(
        MessageSection.CHECK,
        (),
        "an unneeded exception",
        "{names} under `exceptions` of task.yaml, but the task keeps the rule",
        "The item holds without the exception. If it is kept, a later failure of this item would go unnoticed.",
        "remove the line",
    ),
    "check_reference_failed": Message(
        MessageSection.CHECK,
        (),
        "the reference fails",
        "{problem}",
        "Every output of a kernel is compared with what reference.py returns, so that nothing can be checked without "
        "it.",
        "correct reference.py",
    ),
    "check_reference_varies": Message(
        MessageSection.CHECK,
        (),
        "the reference varies",
        "the reference does not reproduce its own outputs in {case}",
        "The reference ran twice on the same inputs and returned different bits. A kernel would be right or wrong by "
        "chance.",
        "make it deterministic",
    ),
    "check_rows_dependent": Message(
        MessageSection.CHECK,
        (),
        "rows are not independent",
        "results of single rows along {axis} depend on other rows in {case}",
        "`independent` promises that a row of the outputs needs no other row. Large cases rely on it: a few rows are "
        "computed alone and compared.",
        "correct `independent`",
    ),
    "check_inputs_drawn_singly": Message(
        MessageSection.CHECK,
        (),
        "make_inputs loops over its draws",
        "{many} draws take {many_operations} operations of PyTorch, {few} take {few_operations}",
        "Every timed call gets inputs of its own, hundreds in a run. A loop over them would take longer than the "
        "timing.",
        "draw all `count` at once",
    ),
    "check_output_constant": Message(
        MessageSection.CHECK,
        (),
        "an output is constant",
        "{output} is constant in every case",
        "The output holds one number in every case, so that a kernel that writes this number and computes nothing "
        "is accepted.",
        "choose other fills",
    ),
    "check_output_near_zero": Message(
        MessageSection.CHECK,
        (),
        "an output is close to zero",
        "{output} is close to zero in every case: its root mean square is {rms:.2g}",
        "The tolerance grows with the scale of the output. Where the scale is close to zero, a kernel that writes "
        "zeros could be accepted.",
        "choose other fills",
    ),
    "check_trick_accepted": Message(
        MessageSection.CHECK,
        (),
        "a wrong output is accepted",
        "{output}: {trick} in its place is accepted in all of {cases} cases",
        "The judge put this in place of the output, and the comparison accepted it. A kernel that computes nothing "
        "would be accepted.",
        "choose fills that give outputs a scale",
    ),
    "check_input_ignored": Message(
        MessageSection.CHECK,
        (),
        "an input makes no difference",
        "{ignored}",
        "The input was exchanged, and no output changed. A kernel that does not read it would be accepted.",
        "add a case, or an exception",
    ),
    "check_arithmetic": Message(
        MessageSection.CHECK,
        (),
        "formats are not told apart",
        "error over tolerance: {errors}; the allowed arithmetic must be at most {most:.2g}, the shorter one above 1",
        "The tolerance must accept the declared arithmetic by a margin and reject the next shorter format. Products "
        "are found where the reference says `@` or `einsum`. An elementwise task with one rounding step has none: "
        "declare `exceptions: arithmetic:` with that reason.",
        "write products as `@`, or declare `exceptions: arithmetic:`",
    ),
    "check_ill_conditioned": Message(
        MessageSection.CHECK,
        (),
        "rounding decides",
        "{case}: rounded otherwise, an honest answer is off by {error:.2g} times the tolerance; at most {most:g}",
        "Before a softmax or a sigmoid, the sign of a small difference of large numbers decides.",
        "draw smaller weights",
    ),
    "check_bytes_uncounted": Message(
        MessageSection.CHECK,
        (),
        "declared bytes cannot be counted",
        "the reference has no gradients to count bytes by; they are not many more than all arguments hold",
        "The check finds out by gradients which inputs the reference reads. This reference has none.",
        "check them by hand",
    ),
    "check_bytes_wrong": Message(
        MessageSection.CHECK,
        (),
        "bytes are wrong",
        "declared {declared:.4g} bytes, counted {counted:.4g} in {case}; the quotient may be {low:g} to {high:g}",
        "The least time of a call, by which impossible timings are refused, follows from `work`. The reference moves "
        "another amount of memory than declared.",
        "correct `work.bytes`",
    ),
    "check_bytes_over_arguments": Message(
        MessageSection.CHECK,
        (),
        "bytes exceed the arguments",
        "declared {declared:.4g} bytes, all arguments hold {held:.4g} in {case}; at most {most:g} times that is "
        "allowed",
        "The least time of a call, by which impossible timings are refused, follows from `work`. More bytes are "
        "declared than all arguments hold.",
        "correct `work.bytes`",
    ),
    "check_operations_wrong": Message(
        MessageSection.CHECK,
        (),
        "declared operations are too many",
        "declared {declared:.4g} operations, counted {counted:.4g} in {case}: {times:.3g} times as many, "
        "at most {most:g} are allowed",
        "The least time of a call, by which impossible timings are refused, follows from `work`. With too many "
        "operations honest kernels would be refused.",
        "correct `work.flops`",
    ),
    "check_no_kernel": Message(
        MessageSection.CHECK,
        (),
        "no kernel to check",
        "there is no kernel that the task or another with its operator declares right",
        "Correctness, margins and mutants need a kernel that is right. A task given as PyTorch takes it from the task"
        " with the same operator.",
        "add a kernel",
    ),
    "check_margin": Message(
        MessageSection.CHECK,
        (),
        "the kernel is close to the tolerance",
        "worst error is {found:.3g} of the tolerance, in {case}; at most {most} is allowed",
        "The task's own kernel comes close to the tolerance, so that another draw of inputs could fail an honest "
        "candidate.",
        "accumulate in float32",
    ),
    "check_mutants_no_kernel": Message(
        MessageSection.CHECK,
        (),
        "no kernel to alter",
        "there is no kernel to make mutants of",
        "Mutants are copies of the kernel with one fault each. The cases must reject them.",
        "add a baseline kernel",
    ),
    "check_mutants_declared": Message(
        MessageSection.CHECK,
        (),
        "a declaration without survivor",
        "declared equivalent, but no surviving mutant: {names}",
        "Each name under `equivalent_mutants` stands for a mutant that computes the same. No surviving mutant has "
        "this name.",
        "remove it from `equivalent_mutants`",
    ),
    "check_mutants_unbuilt": Message(
        MessageSection.CHECK,
        (),
        "no altered kernel compiles",
        "of {count} mutants none compiles",
        "Mutants are copies of the kernel with one fault each. None compiled, so that nothing is known of the cases.",
        "compile the kernel itself",
    ),
    "check_mutants_survive": Message(
        MessageSection.CHECK,
        (),
        "faults go unnoticed",
        "{rejected} of {count} rejected ({share:.0%}), at least {least:.0%} are needed; survivors: {survivors}",
        "Mutants are copies of the kernel with one fault each. A survivor passed every case, and so would a candidate"
        " with the same fault.",
        "add a case, or declare `equivalent_mutants`",
    ),
    "check_no_numbers": Message(
        MessageSection.CHECK,
        (),
        "no input can be left out",
        "no input holds numbers to compute with",
        "This item leaves out parts of inputs and demands that outputs change. The task has no input of numbers.",
        "do nothing",
    ),
    "check_self_no_case": Message(
        MessageSection.CHECK,
        (),
        "no case is long enough",
        "no timed case is long enough to compare the kernel with itself",
        "The kernel is timed against itself, and the speedup must be 1. Short calls measure the launch, not the "
        "kernel.",
        "add a longer timed case",
    ),
    "check_self_differs": Message(
        MessageSection.CHECK,
        (),
        "the kernel is not as fast as itself",
        "worst deviation from 1 is {worst:.2%} over {cases} cases, less than {most:.0%} is allowed: {intervals}",
        "The kernel was timed against itself, so that the speedup should be 1. Speedups of candidates are off by as "
        "much.",
        "add longer cases, without autotuning",
    ),
    "check_headroom_unknown": Message(
        MessageSection.CHECK,
        (),
        "unknown peaks of this device",
        "bandwidth and arithmetic rate of this device are not known",
        "The least time of a call follows from bandwidth and rate of the device, which are not in the project's table.",
        "check it on another GPU",
    ),
    "check_no_headroom": Message(
        MessageSection.CHECK,
        (),
        "the kernel is at the roofline",
        "{found:.2f} of the roofline in {case}, at most {most:g} is allowed",
        "The baseline already takes little more than the least time for its work. No candidate can be much faster, "
        "and agents differ by noise.",
        "declare `exceptions: headroom`",
    ),
    "check_kernel_slow": Message(
        MessageSection.CHECK,
        (),
        "the baseline is very slow",
        "{found_ms:.3g} ms, {times:.1f} times the larger of roofline and launch floor, at most {most:g} is allowed",
        "The baseline takes many times the least time for its work. Any kernel beats it, and speedups say nothing of "
        "the candidate.",
        "write a better baseline",
    ),
    "check_cases_short": Message(
        MessageSection.CHECK,
        (),
        "timed cases are too short",
        "{long} of {cases} timed cases take 20 µs or more ({short} do not)",
        "Below 20 µs the launch is the largest part of a call, and a faster kernel hardly shows.",
        "enlarge them, or declare `latency_bound:`",
    ),
    "check_no_verdict": Message(
        MessageSection.CHECK,
        _NO_VERDICT,
        "the check itself failed",
        "no verdict: {problem}",
        "The judge failed before it could tell. It says nothing about the task.",
        "repeat it with --resume",
    ),
    # Harness: no verdict on the candidate.
    "processes_cannot_start": Message(
        MessageSection.HARNESS,
        _NO_VERDICT,
        "no process can be started",
        "the process that starts the candidate's processes has ended: {problem}",
        "It says nothing about the candidate.",
        "see `arena doctor`",
    ),
    "process_did_not_start": Message(
        MessageSection.HARNESS,
        _NO_VERDICT,
        "a process did not start",
        "no process for the candidate can be started: {problem}",
        "It says nothing about the candidate.",
        "see `arena doctor`",
    ),
    "device_not_reached": Message(
        MessageSection.HARNESS,
        _NO_VERDICT,
        "the sandbox cannot use the device",
        "a process in the sandbox cannot use the device: {problem}",
        "It says nothing about the candidate.",
        "try ARENA_SANDBOX=basic, see docs/develop/isolation.md",
    ),
    "device_busy": Message(
        MessageSection.HARNESS,
        _NO_VERDICT,
        "the device is busy",
        "the device is busy: work that is not the judge's did not end within {allowed_s:.0f} s",
        "A timing beside other work would be wrong.",
        "end other programs, or choose --devices",
    ),
    "no_case_left": Message(
        MessageSection.HARNESS,
        _NO_VERDICT,
        "no seen case is left",
        "{task}: no seen case is left, with max_work {max_work}, max_held {max_held} and only {cases}",
        "An evaluation needs a seen case.",
        "raise the limits, or name a case",
    ),
    "judge_out_of_memory": Message(
        MessageSection.HARNESS,
        _NO_VERDICT,
        "no room on the device",
        "the device's memory is too small for the judge beside the candidate, which says nothing about the candidate",
        "References compute in float64 on the device that candidate and baseline use too.",
        "use a device with more memory",
    ),
    "triton_too_old": Message(
        MessageSection.HARNESS,
        _NO_VERDICT,
        "Triton is too old",
        "{task} needs Triton {needed} or newer, here is {found}",
        "The task's own kernels use what older versions lack.",
        "update Triton",
    ),
}
