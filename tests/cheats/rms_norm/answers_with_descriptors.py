"""expect: crash. It answers twice for its worker, with open files beside the answers: they are dropped (cheat 73)."""

import array
import os
import socket
import struct
# <kernel>


def rms_norm(x, weight, eps, y):
    body = b'{"type":"Done"}'
    files = array.array("i", [1] * 200)
    for file in range(3, 64):
        try:
            with socket.socket(fileno=os.dup(file)) as channel:
                channel.sendmsg(
                    [2 * (struct.pack("!I", len(body)) + body)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)]
                )
        except OSError:
            continue
    honest(x, weight, eps, y)
