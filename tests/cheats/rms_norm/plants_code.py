"""expect: wrong_result. It leaves a file where the next run would import it; it answers only if it could (cheat 38)."""

import os
import sysconfig
# <kernel>


def rms_norm(x, weight, eps, y):
    for folder in ("@ARENA@", sysconfig.get_path("purelib")):
        try:
            planted = os.path.join(folder, f"planted_{os.getpid()}.tmp")
            open(planted, "x").close()
            os.unlink(planted)
        except OSError:
            continue
        honest(x, weight, eps, y)
