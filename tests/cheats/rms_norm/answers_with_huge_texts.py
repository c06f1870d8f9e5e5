"""expect: crash. It answers for its worker, with a text of 6 MiB for every case: what the judge reads is bounded (cheat 73)."""

import os
import struct
# <kernel>


def rms_norm(x, weight, eps, y):
    body = b'{"type":"Failed","blame":"launch_error","detail":"' + b"x" * (6 << 20) + b'"}'
    for file in range(3, 64):
        try:
            os.write(file, struct.pack("!I", len(body)) + body)
        except OSError:
            continue
    honest(x, weight, eps, y)
