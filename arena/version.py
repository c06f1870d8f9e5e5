"""The release, and what made a record: hashes of the package's code. In every record, `run.json` and page."""

from __future__ import annotations

from functools import cache

import arena
from arena.package import PACKAGE, closure_hash, package_files

RELEASE = arena.__version__
JUDGE = ("arena.judge.process.service", "arena.judge.compile.builder_service")
"""the programs that decide a verdict, with all that they import or start"""
_CHARACTERS = 12


@cache
def code_hash() -> str:
    """Return the SHA-256 over names and bytes of the package's files, tasks and pages left out."""
    import hashlib

    digest = hashlib.sha256()
    for path in package_files(PACKAGE):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(PACKAGE).as_posix()}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def version() -> str:
    """Return the release with the hash of the package's code: `0.2.0+3f2a91c04b7e`."""
    return f"{RELEASE}+{code_hash()[:_CHARACTERS]}"


@cache
def judge_hash() -> str:
    """Return a hash of the code that decides a verdict, the judge and all that it imports or starts."""
    return closure_hash(JUDGE, package=PACKAGE)[:_CHARACTERS]


def own_versions() -> dict[str, str]:
    """Return what records say of this package: `arena`, its release and code, and `judge`, what decides verdicts."""
    return {"arena": version(), "judge": judge_hash()}
