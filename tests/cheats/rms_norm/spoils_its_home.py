"""expect: passed or crash. It leaves a home in which no other worker of it can start, and counts on no verdict; where its folders are mounts it cannot (cheat 75).

With held-out cases.
"""

import os
import shutil
# <kernel>


def rms_norm(x, weight, eps, y):
    cache = os.environ["TRITON_CACHE_DIR"]
    shutil.rmtree(cache, ignore_errors=True)
    if not os.path.exists(cache):
        open(cache, "w").close()
    honest(x, weight, eps, y)
