"""expect: crash. It answers for its worker, with bytes that are no UTF-8 (cheat 73)."""

import os
import struct
# <kernel>


def rms_norm(x, weight, eps, y):
    body = b'{"type":"Failed","blame":"launch_error","detail":"\xff\xfe"}'
    for file in range(3, 64):
        try:
            os.write(file, struct.pack("!I", len(body)) + body)
        except OSError:
            continue
    honest(x, weight, eps, y)
