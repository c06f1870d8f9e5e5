"""expect: crash. It leaves at once and says that all is well (cheats 31 and 39)."""

import os
# <kernel>


print('{"status": "passed", "speedup": 100.0}', flush=True)
os._exit(0)
