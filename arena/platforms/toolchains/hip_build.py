"""What the HIP toolchains share: one compiler call in a clean folder and environment, behind the build cache."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Protocol

from arena.errors import InfrastructureError
from arena.platforms.toolchains.base import BuildFailed, Built, Source
from arena.platforms.toolchains.build_cache import BuildCache, content_key
from arena.platforms.toolchains.hip_reads import ASSEMBLED, READS_NAME, assembler_file, collect
from arena.platforms.toolchains.hip_reads import environment as reads_environment
from arena.platforms.toolchains.hip_resources import Resources, take_amd, take_nvidia
from arena.platforms.toolchains.hip_texts import note_odd_names
from arena.processes import process

_ANSWER_S = 60.0
_LEAST_FREE_BYTES = 64 << 20
"""with less, a compiler that finds no space is no fault of a candidate's"""
KEPT_BYTES = 64 << 20
"""what the cache keeps of one build; a large kernel's files have some megabytes"""
LOG_NAME = "build.log"
OBJECT_NAME, ASSEMBLY_NAME = "kernel.o", "kernel.s"
UNIT = "{unit}"
KEEP_OBJECT = "-save-temps=obj"


class Runner(Protocol):
    """Runs a command as `arena.processes.process.run` does; a judge passes one that runs it in the sandbox."""

    def __call__(
        self, command: Sequence[str | Path], *, timeout_s: float, cwd: Path | None, env: Mapping[str, str] | None
    ) -> process.Finished:
        """Run it in `cwd` with exactly the environment `env`."""
        ...

    def __hash__(self) -> int:
        """Functions have one: toolchains are kept by the runner they use."""
        ...


def run_plainly(
    command: Sequence[str | Path], *, timeout_s: float, cwd: Path | None, env: Mapping[str, str] | None
) -> process.Finished:
    """Run the compiler without a sandbox."""
    return process.run(command, timeout_s=timeout_s, cwd=cwd, env=env)


@dataclass(frozen=True)
class Recipe:
    """One compiler call: input files by name, the command without its output, and what else decides the result.

    With `link` the call makes `unit` (an object file, or assembly, which keeps what inline assembly says), and a second
    call links it: `{unit}` stands for it there. The object file stays beside the library.
    """

    files: Mapping[str, str]
    command: Sequence[str]
    output: str
    identity: Mapping[str, str] = field(default_factory=dict)
    link: Sequence[str] = ()
    unit: str = "kernel.o"

    @property
    def key(self) -> str:
        """The build cache's key."""
        parts = {f"file {name}": text for name, text in self.files.items()}
        parts |= {f"identity {name}": text for name, text in self.identity.items()}
        commands = {"command": "\0".join(self.command), "link": "\0".join(self.link)}
        return content_key({**parts, **commands, "output": self.output, "kept beside it": READS_NAME})

    def calls(self, result: Path, work: Path) -> list[list[str]]:
        """Return the compiler calls that fill the folder `result`, started in the folder `work`."""
        command = [part.replace(ASSEMBLED, assembler_file(result, work)) for part in self.command]
        if not self.link:
            return [[*command, "-o", str(result / self.output)]]
        made = str(result / self.unit)
        link = [made if part == UNIT else part for part in self.link]
        as_far_as = "-S" if self.unit == ASSEMBLY_NAME else "-c"
        return [[*command, as_far_as, "-o", made], [*link, "-o", str(result / self.output)]]


def compiler_environment(scratch: Path) -> dict[str, str]:
    """Return the whole environment of a compiler: nothing of the user's but where programs and ROCm are."""
    return {
        **({"ROCM_PATH": os.environ["ROCM_PATH"]} if "ROCM_PATH" in os.environ else {}),
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "LC_ALL": "C",
        "CCACHE_DISABLE": "1",
    }


def default_cache_root() -> Path:
    """Return the user's cache folder for builds."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "unseen-arena" / "builds"


def build_cached(
    recipe: Recipe,
    cache: BuildCache,
    *,
    timeout_s: float,
    run: Runner = run_plainly,
    resources: Callable[[str], Resources] | None = None,
) -> Built | BuildFailed:
    """Return what the recipe makes, from the cache or by its compiler calls. Failures are not kept.

    `resources` takes out of any log what each kernel uses. The cache keeps the log as it was printed.
    """
    take = resources or _no_resources
    started = time.monotonic()
    key = recipe.key
    entry = cache.find(key)
    if entry is not None:
        log, kernels = take((entry / LOG_NAME).read_text(encoding="utf-8"))
        return Built(entry / recipe.output, log, time.monotonic() - started, cached=True, kernels=kernels)
    with cache.staging() as staging:
        work, result, scratch = staging / "work", staging / "result", staging / "tmp"
        for folder in (work, result, scratch):
            folder.mkdir()
        for name, text in recipe.files.items():
            (work / name).write_text(text, encoding="utf-8", errors="surrogateescape")
        printed = ""
        for command in recipe.calls(result, work):
            left_s = max(0.0, timeout_s - (time.monotonic() - started))
            environment = {**compiler_environment(scratch), **reads_environment(result, work)}
            done = run(command, timeout_s=left_s, cwd=work, env=environment)
            printed += done.output
            if not done.ok:
                break
        log, kernels = take(printed)
        if not done.ok and os.strerror(errno.ENOSPC) in printed and shutil.disk_usage(staging).free < _LEAST_FREE_BYTES:
            raise InfrastructureError(
                f"the cache {cache.root} is full; make room, or set XDG_CACHE_HOME to another folder"
            )
        if not done.ok or not (result / recipe.output).is_file():
            return BuildFailed(log, time.monotonic() - started, done.timed_out)
        note_odd_names(result)
        if refused := _refused(result):
            return BuildFailed(refused, time.monotonic() - started)
        kept = result / f"{recipe.output}-{OBJECT_NAME}"  # the name that g++ gives to what `KEEP_OBJECT` keeps
        if kept.is_file():
            kept.rename(result / OBJECT_NAME)
        (result / READS_NAME).write_text(collect(result, work, scratch), encoding="utf-8", errors="surrogateescape")
        (result / LOG_NAME).write_text(printed, encoding="utf-8")
        entry = cache.publish(result, key)
    return Built(entry / recipe.output, log, time.monotonic() - started, cached=False, kernels=kernels)


def answered(run: Runner, command: Sequence[str], scratch: Path) -> str:
    """Return what a compiler prints of itself. Raises `InfrastructureError` where it does not end in time."""
    done = run(command, timeout_s=_ANSWER_S, cwd=scratch, env=compiler_environment(scratch))
    if done.timed_out:
        asked = " ".join(map(str, command))
        raise InfrastructureError(f"`{asked}` did not end within {_ANSWER_S:.0f} s; repeat on a less busy machine")
    return done.output


def _refused(result: Path) -> str:
    """Why what compilers have made is not taken; empty where it is."""
    made = sum(file.stat().st_size for file in result.iterdir())
    if made > KEPT_BYTES:
        return f"the compiled kernel has {made >> 20} MiB, at most {KEPT_BYTES >> 20} are taken"
    return ""


def _no_resources(log: str) -> Resources:
    return log, ()


def folder_texts(folder: Path, patterns: Sequence[str]) -> dict[str, str]:
    """Return the files below `folder` by relative name: header sets are part of a build's identity."""
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for pattern in patterns
        for path in sorted(folder.rglob(pattern))
    }


class SdkToolchain:
    """What toolchains around an SDK's one compiler driver share: where it is, and what it says of itself.

    With `resources` a build also says what each kernel uses.
    """

    program: str
    install: str

    def __init__(
        self, cache: BuildCache, *, compiler: str = "", run: Runner = run_plainly, resources: bool = False
    ) -> None:
        self._cache = cache
        self._wanted = compiler or self.program
        self._run = run
        self._resources = resources

    def version(self) -> str:
        """The lines by which the compiler tells its version; part of the build cache's key."""
        return self._version

    @cached_property
    def compiler(self) -> str:
        """The path of the compiler. Raises `InfrastructureError` where it is missing."""
        path = shutil.which(self._wanted)
        if path is None:
            raise InfrastructureError(f"{self._wanted} is not on PATH: {self.install}")
        return path

    @cached_property
    def _version(self) -> str:
        lines = [line.strip() for line in self._asked.splitlines() if self._tells(line)]
        return "; ".join(lines) or self._asked.strip()

    @cached_property
    def _asked(self) -> str:
        """All that the compiler says of itself."""
        with self._cache.staging() as scratch:
            return answered(self._run, [self.compiler, "--version"], scratch)

    def _built(
        self,
        source: Source,
        command: Sequence[str],
        identity: Mapping[str, str],
        take: Callable[[str], Resources] | None,
        timeout_s: float,
        link: Sequence[str] = (),
    ) -> Built | BuildFailed:
        """Compile a candidate and `link` it, or take it from the cache; `identity`: what else decides the result."""
        files = {source.name: source.kernel, "task.h": source.task_header}
        recipe = Recipe(files, command, "kernel.so", {"compiler": self._version, **identity}, link)
        return build_cached(recipe, self._cache, timeout_s=timeout_s, run=self._run, resources=take)

    def _flags(self, flags: tuple[str, ...]) -> tuple[str, ...]:
        """The flags that make a compiler tell resource use, where that was asked for."""
        return flags if self._resources else ()

    def _amd_resources(self, arch: str) -> Callable[[str], Resources] | None:
        return partial(take_amd, arch=arch) if self._resources else None

    def _nvidia_resources(self, arch: str) -> Callable[[str], Resources] | None:
        return partial(take_nvidia, arch=arch) if self._resources else None

    @staticmethod
    def _tells(line: str) -> bool:
        return "version" in line.lower() or "release" in line
