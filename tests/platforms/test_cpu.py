"""The CPU platform: memory that two processes share and neither can resize."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from arena.errors import UsageError
from arena.platforms import NAMES, detect, platform
from arena.platforms.cpu.platform import CpuPlatform
from arena.processes.protocol import Handle

# Another process, without this package: what a descriptor alone gives.
_OTHER = """
import mmap, os, sys
file, size = int(sys.argv[1]), int(sys.argv[2])
view = mmap.mmap(file, size)
print(view[0], view[size - 1])
view[1] = 77
for wanted in (0, size - 1, size + 1, size * 2):
    try:
        os.ftruncate(file, wanted)
        print("resized to", wanted)
    except PermissionError:
        print("sealed")
"""


def test_two_processes_share_a_buffer_that_neither_can_resize() -> None:
    buffer = CpuPlatform().allocate(5000)
    assert buffer.file is not None and buffer.handle == Handle(5000)
    assert buffer.tensor.shape == (5000,) and not buffer.tensor.any()
    buffer.tensor[0], buffer.tensor[4999] = 11, 22
    command = [sys.executable, "-c", _OTHER, str(buffer.file), "5000"]
    done = subprocess.run(command, pass_fds=[buffer.file], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split("\n") == ["11 22", *["sealed"] * 4, ""]
    assert buffer.tensor[1] == 77
    buffer.close()


def test_the_seals_cannot_be_taken_off() -> None:
    import fcntl

    buffer = CpuPlatform().allocate(64)
    assert buffer.file is not None
    with pytest.raises(PermissionError):
        fcntl.fcntl(buffer.file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    assert not os.get_inheritable(buffer.file)
    buffer.close()


def test_a_descriptor_that_came_over_a_socket_is_the_same_memory() -> None:
    here = CpuPlatform()
    buffer = here.allocate(128)
    assert buffer.file is not None
    one, two = socket.socketpair()
    with one, two:
        socket.send_fds(one, [b"x"], [buffer.file])
        _, files, _, _ = socket.recv_fds(two, 1, 1)
    theirs = here.open(buffer.handle, files[0])
    buffer.tensor[5] = 9
    assert theirs.tensor[5] == 9
    theirs.close()
    theirs.close()
    buffer.close()
    assert theirs.tensor[5] == 9


def test_a_descriptor_is_needed() -> None:
    with pytest.raises(ValueError, match="travels as a file descriptor"):
        CpuPlatform().open(Handle(64), None)


@pytest.mark.parametrize("wave_size", [32, 64])
def test_facts(wave_size: int) -> None:
    facts = CpuPlatform(wave_size).facts()
    assert (facts.platform, facts.arch, facts.wave_size, facts.emulated) == ("cpu", "cpu", wave_size, True)
    assert facts.name and facts.memory_bytes > 1 << 28
    assert facts.roofline_ms(1e9, 1e9, "float32") is None


def test_platforms_by_name() -> None:
    assert [platform(name).name for name in NAMES] == list(NAMES) == ["rocm", "cuda", "cpu"]
    with pytest.raises(UsageError, match="unknown platform 'metal'; expected one of: rocm, cuda, cpu"):
        platform("metal")
    assert detect() in NAMES


def test_looking_a_platform_up_imports_no_torch() -> None:
    code = "import sys; from arena.platforms import platform; platform('rocm'); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False\n"
