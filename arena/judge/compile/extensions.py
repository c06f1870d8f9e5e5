"""The extensions that a module has PyTorch compile: found out by having it ask, and built by confined compilers.

The module is loaded, constructed and called in workers without a device. Each time it asks for an extension that is not
there, that one is built, and another worker begins anew with it. Nothing else that happens there says anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from arena.judge.compile.cross_compile import CrossCompilation, Limit, arguments_only
from arena.judge.compile.rules import kernel_libraries
from arena.judge.workers.program import Program, WorkerProgram
from arena.judge.workers.worker import MOST_EXTENSIONS, CandidateFailed, LacksExtension
from arena.platforms.cuda import extension_symbols
from arena.platforms.cuda.extension import ExtensionToolchain, foreign_libraries
from arena.platforms.toolchains.base import BuildFailed
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_build import Runner, default_cache_root
from arena.platforms.toolchains.targets import TARGETS
from arena.processes.protocol import Call, Extension, LoadConstants, Prepare
from arena.processes.sandbox import compiling
from arena.results.environment import DeviceFacts
from arena.results.messages import message, within
from arena.results.verdict import Status
from arena.task.definition import Case, arguments
from arena.task.numerics.reference import Reference

_ASKS = re.compile(r"\bcpp_extension\b|\bload_inline\b")


class ExtensionBuilder:
    """Builds what modules ask for. Thread-safe: each call has workers of its own."""

    def __init__(self, cross_compilation: CrossCompilation, run: Runner, timeout_s: float) -> None:
        """Take the means.

        Args:
            cross_compilation: has the processes that workers without a device come from.
            run: runs a compiler in the sandbox.
            timeout_s: seconds of one compiler call.
        """
        self._cross_compilation, self._timeout_s = cross_compilation, timeout_s
        self._toolchain = ExtensionToolchain(BuildCache(default_cache_root() / compiling.level()), run)

    def complete(self, program: Program, cases: Sequence[Case], facts: DeviceFacts, limit: Limit) -> Program:
        """Return a program with every extension that it asks for on these cases.

        Args:
            program: a module or another candidate in Python; one whose text asks for nothing is returned as it is.
            cases: those of one split, so that what it asks for tells nothing of the other; it is called on the
                smallest and on the middle one.
            facts: the device.
            limit: seconds of one call, and the folders that are hidden.

        Raises:
            CandidateFailed: one does not compile, breaks a rule, or is for another platform.
        """
        if not program.task.takes_modules:
            return program
        text = program.files[""].read_text(encoding="utf-8", errors="replace")
        if not _ASKS.search(text):
            return program
        if facts.emulated or facts.arch not in TARGETS or TARGETS[facts.arch].vendor != "nvidia":
            return program  # the worker says what it lacks
        extensions = dict(program.extensions)
        by_size = sorted(cases, key=lambda case: arguments(program.task, case).num_bytes)
        for case in [*by_size[:1], *by_size[1:][len(by_size[1:]) // 2 :][:1]]:
            while (lack := self._asked(replace(program, extensions=extensions), case, facts.arch, limit)) is not None:
                if len(extensions) == MOST_EXTENSIONS:
                    raise LacksExtension(lack)
                extensions[lack.key] = self._built(lack, facts.arch)
        return replace(program, extensions=extensions)

    def _asked(self, program: Program, case: Case, arch: str, limit: Limit) -> Extension | None:
        """Return the first extension that is asked for on a case and is not there."""
        worker_program = WorkerProgram(self._cross_compilation.fork_servers, None, limit.hide, limit.timeout_s)
        worker_program.adopt(replace(program, target=arch, ahead=True))
        try:
            worker = worker_program.ready(case)
            with closing(arguments_only(program.task, case, Reference(program.task.reference_path))) as sets:
                worker.ask(sets.bind_message(), limit.timeout_s, sets.files)
                worker.ask(LoadConstants(), limit.timeout_s)
                worker.ask(Prepare(), limit.timeout_s)
                worker.ask(Call(0), limit.timeout_s)
                worker.release(limit.timeout_s)
        except LacksExtension as lack:
            return lack.extension
        except CandidateFailed:  # for want of a device, as a rule; else it fails on one too
            return None
        finally:
            worker_program.discard()
        return None

    def _built(self, extension: Extension, arch: str) -> Path:
        where = f"extension {extension.name}"
        foreign = [*kernel_libraries(extension), *foreign_libraries(extension.link_flags)]
        if foreign:
            detail = message("include_not_allowed", place=where, name=foreign[0])
            raise CandidateFailed(Status.RULE_VIOLATION, detail)
        built, objects = self._toolchain.build(extension, arch, self._timeout_s)
        if isinstance(built, BuildFailed):
            code = "compiler_timed_out" if built.timed_out else "compiler_refused"
            printed = {"allowed_s": self._timeout_s, "printed": ""} if built.timed_out else {"log": built.log.strip()}
            status = Status.TIMEOUT if built.timed_out else Status.COMPILE_ERROR
            raise CandidateFailed(status, within("in_file", message(code, **printed), file=where))
        broken = extension_symbols.broken_rules(objects)
        if broken:
            raise CandidateFailed(Status.RULE_VIOLATION, within("in_file", "\n".join(broken), file=where))
        return built.library
