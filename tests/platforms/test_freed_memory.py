"""Device memory that its owner has freed while another process still maps it: nobody may be given it before."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from arena.platforms import here

_OLD, _NEW = 0x11, 0x5A
_TURNS = 3
_KEEPER = """
import socket, sys
from arena.platforms import here
from arena.processes.protocol import Handle
end = socket.socket(fileno=int(sys.argv[1]))
buffer = here("auto").open(Handle(int(sys.argv[2]), sys.argv[3], False), None)
end.send(b"mapped")
end.recv(1)
end.send(bytes([int(buffer.tensor.min()), int(buffer.tensor.max())]))
"""


@pytest.mark.gpu
@pytest.mark.parametrize("mib", [4, 64, 1024])
def test_what_a_host_keeps_mapped_is_not_used_again(mib: int) -> None:
    """A candidate that does not let go of a buffer sees what was in it, and nothing that the judge writes later."""
    device, num_bytes = here("auto"), mib << 20
    buffer = device.allocate(num_bytes)
    buffer.tensor.fill_(_OLD)
    device.synchronize()
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-c", _KEEPER, str(theirs.fileno()), str(num_bytes), buffer.handle.ipc]
    with ours, subprocess.Popen(command, pass_fds=[theirs.fileno()]):
        theirs.close()
        assert ours.recv(6) == b"mapped"
        buffer.close()
        later = [device.allocate(num_bytes) for _ in range(_TURNS)]
        for other in later:
            other.tensor.fill_(_NEW)
        device.synchronize()
        ours.send(b"?")
        seen = ours.recv(2)
    for other in later:
        other.close()
    assert seen == bytes([_OLD, _OLD])
