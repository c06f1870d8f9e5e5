"""A judge process that notes its environment at the end of the file `TEST_NOTES`, and ends."""

from __future__ import annotations

import json
import os
from pathlib import Path

if __name__ == "__main__":
    with Path(os.environ["TEST_NOTES"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(dict(os.environ)) + "\n")
