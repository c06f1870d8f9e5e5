"""expect: wrong_result. A child leaves the session, to live on; it answers only if it could (cheat 37)."""

import os
# <kernel>


_left = []


def _leave():
    try:
        pid = os.fork()
    except OSError:
        return False
    if pid == 0:
        code = 1
        try:
            os.setsid()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def rms_norm(x, weight, eps, y):
    if not _left:
        _left.append(_leave())
    if _left[0]:
        honest(x, weight, eps, y)
