"""A hook of MkDocs: pages that are outside of docs/ become pages of the site, below project/, and links follow them.

The files themselves keep links that work in a checkout and on GitHub.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "reports/README.md",
    "reports/full-h200/summary.md",
    *(f"reports/tables/{page.name}" for page in sorted((ROOT / "reports" / "tables").glob("*.md"))),
)
_LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside of docs/ to the site."""
    for path in OUTSIDE:
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, f"project/{path}", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links of a page from places in the repository to places in the site."""
    here = page.file.src_uri
    repository = here.removeprefix("project/") if here.startswith("project/") else f"docs/{here}"

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(repository), link[1]))
        place = target.removeprefix("docs/") if target.startswith("docs/") else f"project/{target}"
        return f"]({posixpath.relpath(place, posixpath.dirname(here) or '.')}"

    return _LINK.sub(moved, markdown)
