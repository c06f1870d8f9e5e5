"""The Dockerfiles, read without Docker: what they copy and call exists, and nothing runs as root or unpinned."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "containers").glob("*.Dockerfile"))
PLATFORMS = ("cuda", "rocm")
_SCRIPT = re.compile(r"\b(?:bash|sh) ([\w./-]+\.sh)\b")


def instructions(text: str) -> list[tuple[str, str]]:
    """Instructions in order, as pairs of name and the rest of the logical line."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    logical = re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines()
    pairs = (line.strip().partition(" ") for line in logical if line.strip())
    return [(name.upper(), rest.strip()) for name, _, rest in pairs]


def in_context(source: str) -> bool:
    """Whether the build context, which `.dockerignore` reduces to a list, holds a path and it exists."""
    kept = re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
    return (ROOT / source).exists() and Path(source).parts[0] in kept


def base_faults(found: list[tuple[str, str]]) -> list[str]:
    """Bases without a tag or digest, or with the tag `latest`."""
    arguments = dict(rest.partition("=")[::2] for name, rest in found if name == "ARG")
    bases = [rest.split()[0] for name, rest in found if name == "FROM"]
    named = [re.sub(r"\$\{(\w+)\}", lambda match: arguments.get(match[1], ""), base) for base in bases]
    pinned = re.compile(r"[\w./-]+(:(?!latest\b)[\w.-]+|@sha256:[0-9a-f]{64})")
    return [f"base {base!r} is not pinned" for base in named or [""] if not pinned.fullmatch(base)]


def user_faults(found: list[tuple[str, str]]) -> list[str]:
    """An entry point that runs as root, or none."""
    user = "root"
    for name, rest in found:
        if name == "USER":
            user = rest.partition(":")[0]
        if name == "ENTRYPOINT":
            return [f"runs as {user}"] if user in ("root", "0") else []
    return ["no entry point"]


def faults(text: str, platform: str) -> list[str]:
    """Everything that is wrong with a Dockerfile."""
    found = instructions(text)
    copied = [source for name, rest in found if name == "COPY" for source in rest.split()[:-1]]
    runs = " ".join(rest for name, rest in found if name == "RUN")
    scripts = _SCRIPT.findall(runs)
    health = [rest for name, rest in found if name == "HEALTHCHECK"]
    wanted = json.dumps(["arena", "doctor", "--quick", "--platform", platform])
    return [
        *base_faults(found),
        *user_faults(found),
        *(f"{source} is not in the build context" for source in copied if not in_context(source)),
        *(f"{script} is not copied" for script in scripts if not set(copied) & {script, script.split("/")[0]}),
        *(f"{script} does not exist" for script in scripts if not (ROOT / script).is_file()),
        *([] if "tools/setup.sh" in scripts else ["the setup script is not called"]),
        *([] if "bubblewrap" in runs else ["bubblewrap is not installed"]),
        *([] if len(health) == 1 and health[0].endswith(f"CMD {wanted}") else [f"health check is not {wanted}"]),
    ]


def test_there_is_one_for_each_gpu_platform() -> None:
    assert tuple(path.name for path in FILES) == tuple(f"{name}.Dockerfile" for name in PLATFORMS)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_dockerfiles_have_no_faults(platform: str) -> None:
    assert faults((ROOT / "containers" / f"{platform}.Dockerfile").read_text(encoding="utf-8"), platform) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("7.2.4-complete", "latest", "not pinned"),
        (":7.2.4-complete", "", "not pinned"),
        ("USER 10001\n", "", "runs as root"),
        ("USER 10001", "USER root", "runs as root"),
        ("COPY tools tools/\n", "", "tools/setup.sh is not copied"),
        ("COPY arena arena/", "COPY arenas arena/", "arenas is not in the build context"),
        ("COPY arena arena/", "COPY docs docs/", "docs is not in the build context"),
        ("tools/setup.sh", "tools/install.sh", "tools/install.sh does not exist"),
        ("bubblewrap", "", "bubblewrap is not installed"),
        ('"--quick", "--platform", "rocm"', '"--quick"', "health check"),
    ],
)
def test_each_fault_is_found(old: str, new: str, fault: str) -> None:
    text = (ROOT / "containers/rocm.Dockerfile").read_text(encoding="utf-8")
    assert old in text
    assert any(fault in found for found in faults(text.replace(old, new), "rocm"))


def test_a_digest_is_a_pin() -> None:
    digest = f"rocm/dev-ubuntu-24.04@sha256:{'0' * 64}"
    assert base_faults([("ARG", f"BASE={digest}"), ("FROM", "${BASE}")]) == []


@pytest.mark.parametrize("platform", PLATFORMS)
def test_make_image_builds_them(platform: str) -> None:
    command = [
        "make",
        "-n",
        "--no-print-directory",
        "image",
        f"PLATFORM={platform}",
        "DOCKER=podman",
        "BASE=name@sha256:1",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"--file containers/{platform}.Dockerfile" in done.stdout
    assert done.stdout.startswith("podman build ") and "--build-arg BASE=name@sha256:1 " in done.stdout
