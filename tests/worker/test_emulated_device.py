"""On the CPU platform device memory is out of the reach of a Triton candidate's host code, as on a GPU."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

START = """
import ctypes, os, sys
os.environ["TRITON_INTERPRET"] = "1"
from arena.platforms.cpu.triton import install
install()
import torch
from arena.worker.operators import Operators
kept = Operators("cpu")
x = torch.full((64, 64), 2.0)
"""
TOUCHES = {
    "read by address": "ctypes.string_at(x.data_ptr(), 4)",
    "written by address": "ctypes.memset(x.data_ptr(), 0, 4)",
    "a copy of its own": "ctypes.string_at(x.clone().data_ptr(), 4)",
    "a view": "ctypes.string_at(x[1:].view(torch.int32).data_ptr(), 4)",
}
REFUSED = {
    "numpy": "x.numpy()",
    "an array": "x.__array__()",
    "a list": "x.tolist()",
    "many numbers": "[x[i, j].item() for i in range(64) for j in range(64)]",
    "a copy to the host": "kept_on_host.copy_(x)",
    "DLPack": "x.__dlpack__()",
}


def run(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", START + text], capture_output=True, text=True, check=False)


@pytest.mark.slow(but=["a view"])
@pytest.mark.parametrize("name", TOUCHES)
def test_a_touch_ends_the_process_and_says_why(name: str) -> None:
    done = run(TOUCHES[name])
    assert done.returncode == -signal.SIGSEGV
    assert "host code touched memory that it may not" in done.stderr and "line 10" in done.stderr


@pytest.mark.slow
def test_what_is_too_much_for_the_host_is_refused() -> None:
    script = (
        "import json\nfrom arena.platforms.cpu.triton.device_memory import HostAccess, begin_call\nimport numpy\n"
        "outcomes = {}\n"
        "kept_on_host = torch.frombuffer(bytearray(4 * 64 * 64), dtype=torch.float32)\n"
        "kept_on_host = kept_on_host.view(64, 64)\n"
        f"for name, text in {REFUSED!r}.items():\n"
        "    begin_call()\n"
        "    try:\n        eval(text)\n        outcomes[name] = ''\n"
        "    except HostAccess as problem:\n        outcomes[name] = str(problem)\n"
        "begin_call()\nassert x[0].tolist() == [2.0] * 64 and x[0, 0].item() == 2.0 and x[0, :4].numpy().sum() == 8.0\n"
        "print(json.dumps(outcomes))\n"
    )
    done = run(script)
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)
    assert set(outcomes) == set(REFUSED)
    assert all("copied to the host in one call; at most 4096" in said for said in outcomes.values()), outcomes


def test_kernels_reach_device_memory_and_nothing_else() -> None:
    script = """
import importlib.util, tempfile, pathlib
text = '''
import triton, triton.language as tl
@triton.jit
def double(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(y_ptr + at, tl.load(x_ptr + at) * 2.0)
'''
file = pathlib.Path(tempfile.mkdtemp()) / "one.py"
file.write_text(text)
spec = importlib.util.spec_from_file_location("one", file)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
y = torch.empty(64)
module.double[(1,)](x[0], y, N=64)
assert y.tolist() == [4.0] * 64
host = torch.frombuffer(bytearray(256), dtype=torch.float32)
for arguments in ((host, y), (x[0], host)):
    try:
        module.double[(1,)](*arguments, N=64)
    except Exception as problem:
        assert "outside of device memory" in str(problem), problem
    else:
        raise SystemExit("a kernel used memory of the host")
"""
    done = run(script)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_memory_is_given_back() -> None:
    script = (
        "from arena.platforms.cpu.triton import device_memory\n"
        "before = len(device_memory._memory.regions)\n"
        "for _ in range(100): torch.empty(1000).zero_()\n"
        "assert len(device_memory._memory.regions) == before\n"
    )
    done = run(script)
    assert done.returncode == 0, done.stderr


def test_new_memory_holds_poison_and_what_is_filled_does_not() -> None:
    script = (
        "made = (torch.empty(3), torch.empty_like(x)[0], x.new_empty(3), torch.empty_strided((3,), (2,)))\n"
        "assert all(tensor[0].item() != tensor[0].item() for tensor in made)\n"
        "assert torch.empty(3, dtype=torch.int32)[2].item() == -1 and torch.empty(3, dtype=torch.bool)[1].item()\n"
        "filled = (torch.zeros(3), torch.full((3,), 2.0), x.new_zeros(3), torch.zeros_like(x)[0], x.clone()[1])\n"
        "assert [tensor[1].item() for tensor in filled] == [0.0, 2.0, 0.0, 0.0, 2.0]\n"
    )
    done = run(script)
    assert done.returncode == 0, done.stderr


def test_what_host_code_asks_of_a_device_is_answered() -> None:
    script = (
        "import triton\n"
        "assert x.is_cuda and x[1:].is_cuda and not torch.frombuffer(bytearray(4), dtype=torch.float32).is_cuda\n"
        "device = torch.cuda.current_device()\n"
        "count = torch.cuda.get_device_properties(device).multi_processor_count\n"
        "driver = triton.runtime.driver.active\n"
        "found = driver.utils.get_device_properties(driver.get_current_device())['multiprocessor_count']\n"
        "assert found == count and driver.get_current_target().backend == 'cuda'\n"
        "with torch.cuda.device(x.device), torch.cuda.stream(torch.cuda.Stream()):\n"
        "    torch.cuda.current_stream().synchronize()\n"
    )
    done = run(script)
    assert done.returncode == 0, done.stderr
