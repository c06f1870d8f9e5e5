"""What tests give to `harbor run`: an environment class on this machine, and an agent that is a script.

Imported by Harbor, in its own Python, from this folder.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

FOLDERS = ("app", "tests", "solution", "logs", "tmp")
SYSTEM = ("bin", "lib", "lib64", "etc")
WRONG = "def rms_norm(*arguments):\n    pass\n"


class LocalEnvironment(BaseEnvironment):
    """A folder for each container, with the container's paths by bubblewrap. It executes only COPY of a Dockerfile."""

    @staticmethod
    def type() -> str:
        return "local"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities()

    def _validate_definition(self) -> None:
        if not (self.environment_dir / "Dockerfile").is_file():
            raise FileNotFoundError(self.environment_dir / "Dockerfile")

    async def start(self, force_build: bool) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="arena-harbor-"))
        for name in FOLDERS:
            (self._root / name).mkdir()
        for name in ("agent", "verifier", "artifacts"):
            (self._root / "logs" / name).mkdir()
        for line in (self.environment_dir / "Dockerfile").read_text(encoding="utf-8").splitlines():
            verb, *words = line.split()
            if verb == "COPY":
                *sources, target = words
                for source in sources:
                    self._copy(self.environment_dir / source, self._inside(target), into=target.endswith("/"))

    async def stop(self, delete: bool) -> None:
        shutil.rmtree(self._root, ignore_errors=True)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        self._copy(Path(source_path), self._inside(target_path))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        self._copy(Path(source_dir), self._inside(target_dir))

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        self._copy(self._inside(source_path), Path(target_path))

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        self._copy(self._inside(source_dir), Path(target_dir))

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
        **_: Any,
    ) -> ExecResult:
        variables = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", **(self._merge_env(env) or {})}
        words = ["bwrap", "--die-with-parent", "--unshare-pid", "--clearenv", "--proc", "/proc", "--dev", "/dev"]
        words += ["--ro-bind", "/usr", "/usr"]
        for name in SYSTEM:
            words += ["--ro-bind-try", f"/{name}", f"/{name}"]
        for name in FOLDERS:
            words += ["--bind", str(self._root / name), f"/{name}"]
        for name, value in variables.items():
            words += ["--setenv", name, value]
        words += ["--chdir", cwd or "/app", "sh", "-c", command]
        process = await asyncio.create_subprocess_exec(*words, stdout=-1, stderr=-1)
        out, errors = await asyncio.wait_for(process.communicate(), timeout_sec)
        return ExecResult(
            stdout=out.decode(errors="replace"),
            stderr=errors.decode(errors="replace"),
            return_code=process.returncode or 0,
        )

    def _inside(self, path: str) -> Path:
        return self._root / path.lstrip("/")

    @staticmethod
    def _copy(source: Path, target: Path, into: bool = False) -> None:
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target / source.name if into else target)


class ScriptedAgent(BaseAgent):
    """Evaluates the kernel it finds, asks for a verdict with its own token, and leaves a wrong kernel where told to."""

    @staticmethod
    def name() -> str:
        return "scripted"

    def version(self) -> str:
        return "1"

    async def setup(self, environment: BaseEnvironment) -> None:
        pass

    async def run(self, instruction: str, environment: BaseEnvironment, context: Any) -> None:
        assert "./evaluate" in instruction and "/app/kernel" in instruction
        steps = [
            "./evaluate --json > /logs/agent/evaluated.json",
            "./evaluate no-such-file; echo $?",
            _ASKS_FOR_A_VERDICT,
        ]
        if "# rms_norm" in instruction and os.environ.get("ARENA_TEST_WRONG"):
            steps.append(f"printf %s {shlex.quote(WRONG)} > kernel.py")
        for number, step in enumerate(steps):
            done = await environment.exec(step, timeout_sec=600)
            text = f"$ {step}\n{done.stdout}{done.stderr}"
            (self.logs_dir / f"step-{number}.txt").write_text(text, encoding="utf-8")
        await environment.download_file("/logs/agent/evaluated.json", self.logs_dir / "evaluated.json")


_ASKS_FOR_A_VERDICT = """python3 - <<'END'
import os, urllib.request
episode = open('/app/.judge/episode').read()
request = urllib.request.Request(os.environ['ARENA_URL'] + '/episodes/' + episode + '/finish', b'{}',
                                 {'Authorization': 'Bearer ' + os.environ['ARENA_TOKEN']})
try:
    print('a verdict:', urllib.request.urlopen(request).read())
except urllib.error.HTTPError as problem:
    print('refused:', problem.code)
END"""
