"""Entry point with the flags of every adapter, and two of our own."""

from __future__ import annotations

import argparse
from pathlib import Path

from .adapter import UnseenArenaAdapter

DEFAULT_OUTPUT_DIR = Path(__file__).resolve().parents[4] / "datasets" / "unseen-arena"


def main() -> None:
    """Parse the flags and write the folders."""
    parser = argparse.ArgumentParser(description="Write the tasks of Unseen Arena as folders of Harbor.")
    parser.add_argument("--output-dir", type=Path, default=DEFAULT_OUTPUT_DIR, help="Directory of the task folders")
    parser.add_argument("--limit", type=int, default=None, help="Generate only the first N tasks")
    parser.add_argument("--overwrite", action="store_true", help="Overwrite existing tasks")
    parser.add_argument("--task-ids", nargs="+", default=None, help="Only generate these task IDs")
    parser.add_argument("--layout", choices=("url", "sidecar"), default="url", help="Where the judge is")
    parser.add_argument("--platform", default="auto", help="auto, cpu, cuda or rocm")
    UnseenArenaAdapter(**vars(parser.parse_args())).run()


if __name__ == "__main__":
    main()
