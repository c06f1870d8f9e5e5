"""What is done once before workers are forked is not done again at the first launch of each."""

from __future__ import annotations

import subprocess
import sys

import pytest

from arena.judge.workers.environment import clean_environment
from arena.platforms.cross import triton as triton_cross
from arena.task.corpus.task_folder import TASKS

RMS_NORM = TASKS / "triton2triton/normalization/rms_norm/kernel.py"
FIRST_LAUNCH = """
import subprocess, sys, torch, triton.language
from types import SimpleNamespace
from arena.platforms.cross import triton as triton_cross
from arena.processes.protocol import Language, Load
from arena.worker.loaders import load

if {warm}:
    triton_cross.warm()
known, asked, ask = set(sys.modules), [], subprocess.check_output
subprocess.check_output = lambda command, *others, **named: asked.append(command[0]) or ask(command, *others, **named)
entry = load(Load(Language.TRITON, {path!r}, "rms_norm", target="sm_90"), "cpu")
x, weight = torch.empty(4, 64), torch.empty(64)
values = {{"x": x, "weight": weight, "eps": 1e-6, "y": torch.empty_like(x)}}
arguments = [SimpleNamespace(name=name) for name in values]
entry.bind(SimpleNamespace(message=SimpleNamespace(arguments=arguments), values=[list(values.values())]))
entry.call(0)
assert entry.kernels()
print(sum("gluon" in name for name in set(sys.modules) - known), len(asked))
"""


@pytest.mark.parametrize("hip", ["7.0", None])
def test_the_library_of_the_installed_pytorchs_vendor_is_looked_for(
    hip: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("triton")
    import torch
    from triton.backends.amd import driver as amd
    from triton.backends.nvidia import driver as nvidia

    asked: list[str] = []
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(amd, "_get_path_to_hip_runtime_dylib", lambda: asked.append("amd"))
    monkeypatch.setattr(nvidia, "libcuda_dirs", lambda: asked.append("nvidia"))
    triton_cross.warm()
    assert asked == ["amd" if hip else "nvidia"]


@pytest.mark.parametrize("warm", [True, False])
def test_nothing_is_imported_or_asked_at_the_first_launch(warm: bool) -> None:
    pytest.importorskip("triton")
    script = FIRST_LAUNCH.format(warm=warm, path=str(RMS_NORM))
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=clean_environment(interprets=False),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    imported, asked = map(int, done.stdout.split())
    assert (imported == 0, asked == 0) == (warm, warm), (imported, asked)


@pytest.mark.parametrize("warm", [True, False])
def test_a_module_constructed_without_memory_imports_nothing_of_pytorch(warm: bool) -> None:
    script = f"""
import sys, torch
from arena.worker.fork_server import _ready_meta_device
if {warm}:
    _ready_meta_device()
known = set(sys.modules)
with torch.device("meta"):
    torch.nn.init.normal_(torch.nn.Linear(4, 4).weight) * 0.02
print(sum(name.startswith("torch.") for name in set(sys.modules) - known))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (int(done.stdout) < 20) is warm
