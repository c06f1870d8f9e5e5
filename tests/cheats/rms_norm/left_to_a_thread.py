"""expect: wrong_result. The work is left to a thread that begins late (cheat 2). Means nothing on a GPU: `later.py` is that with a stream."""

import threading
import time


# <kernel>


def rms_norm(x, weight, eps, y):
    def work():
        time.sleep(0.5)
        honest(x, weight, eps, y)

    threading.Thread(target=work, daemon=True).start()
