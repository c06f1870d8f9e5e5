"""expect: wrong_result. The work is left to a thread, or to a stream nobody waits for (cheats 1 and 2). Means nothing on the CPU: streams do nothing there."""

import threading
import time

import torch
# <kernel>


_streams = []


def rms_norm(x, weight, eps, y):
    if x.is_cuda:
        if not _streams:
            _streams.append(torch.cuda.Stream())
        with torch.cuda.stream(_streams[0]):
            honest(x, weight, eps, y)
        return

    def work():
        time.sleep(0.5)
        honest(x, weight, eps, y)

    threading.Thread(target=work, daemon=True).start()
