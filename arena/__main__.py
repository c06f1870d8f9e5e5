"""`python -m arena`, the same as the command `arena`."""

import os
import sys

if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109 - nothing may be imported before this
    del sys.path[0]  # a file `yaml.py` in the current folder is no module of ours

from arena.cli import main

main()
