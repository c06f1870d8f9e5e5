"""Choose which of this machine's folders a box shows read-only, and which are hidden inside a shown one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store")
"""folders with programs and libraries; several are links into /usr nowadays, and are shown as such"""
ETC = (
    "OpenCL",
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "fonts",
    "glvnd",
    "worker.conf",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "pki/ca-trust",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "profile",
    "protocols",
    "resolv.conf",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
    "vulkan",
)
"""what programs need of /etc, by name, so that a key, a token or a password is not shown for being there"""
STANDARD_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


class Way(StrEnum):
    """The way to fill a place in the box."""

    READ_ONLY = "read-only"
    WRITABLE = "writable"
    LINK = "link"
    EMPTY = "empty"
    """an empty folder in memory, in which nothing can be written"""
    SCRATCH = "scratch"
    """an empty folder in memory, in which files can be written"""


@dataclass(frozen=True)
class Mount:
    """One place in the box; `source` is a path of this machine, a link's target, or empty."""

    way: Way
    place: str
    source: str = ""


def interpreter_folders() -> tuple[Path, ...]:
    """Return where the harness' Python and its libraries lie, PyTorch and Triton with them."""
    return tuple(dict.fromkeys((Path(sys.prefix), Path(sys.base_prefix))))


def system_mounts(root: Path = Path("/")) -> list[Mount]:
    """The system's folders: links stay links, and of /etc only what is named in `ETC`."""
    mounts = []
    for name in SYSTEM:
        path = root / name.lstrip("/")
        if path.is_symlink():
            mounts.append(Mount(Way.LINK, name, str(path.readlink())))
        elif path.is_dir():
            mounts.append(Mount(Way.READ_ONLY, name, str(path)))
    for name in ETC:
        path = root / "etc" / name
        if path.exists():
            mounts.append(Mount(Way.READ_ONLY, f"/etc/{name}", str(path.resolve())))
    return mounts


def shown_mounts(folders: Iterable[Path]) -> list[Mount]:
    """Further folders, at their own paths and, where a link is on the way, also where it leads."""
    mounts = []
    for folder in folders:
        real = folder.resolve()
        if real.exists():
            mounts += [
                Mount(Way.READ_ONLY, place, str(real)) for place in dict.fromkeys((str(folder.absolute()), str(real)))
            ]
    return [mount for mount in mounts if mount.place != "/"]


def hiding_mounts(hidden: Iterable[Path], shown: Sequence[Mount]) -> list[Mount]:
    """An empty folder wherever a shown one holds a hidden one. What is shown deeper inside stays."""
    mounts = {}
    for folder in hidden:
        real = folder.resolve()
        for mount in shown:
            if mount.way is not Way.READ_ONLY or not real.is_relative_to(mount.source) or not real.exists():
                continue
            place = str(Path(mount.place) / real.relative_to(mount.source))
            if real.is_dir():
                mounts[place] = Mount(Way.EMPTY, place)
            else:
                mounts[place] = Mount(Way.READ_ONLY, place, os.devnull)
    return list(mounts.values())


def in_order(mounts: Iterable[Mount]) -> list[Mount]:
    """Outer places first, since what is mounted later covers what is there. The last one named for a place counts."""
    by_place = {mount.place: mount for mount in mounts}
    return sorted(by_place.values(), key=lambda mount: (len(Path(mount.place).parts), mount.place))


def is_shown(path: str, mounts: Sequence[Mount]) -> bool:
    """Return whether a path of this machine is to be seen under the same path in the box. `mounts` are in order."""
    holder = None
    for mount in mounts:
        if Path(path).is_relative_to(mount.place):
            holder = mount
    return holder is not None and holder.way in (Way.READ_ONLY, Way.LINK) and holder.source != os.devnull


def search_path(folders: Sequence[Path], mounts: Sequence[Mount]) -> str:
    """PATH for the agent: the folders shown for it, the harness' Python, what else of our own PATH it can see."""
    candidates = []
    for folder in (*folders, *interpreter_folders()):
        candidates += [folder / "bin", folder / "node_modules" / ".bin"]
        candidates += [folder] if folder.name in ("bin", ".bin") else []
    ours = [entry for entry in os.environ.get("PATH", "").split(os.pathsep) if entry.startswith("/")]
    entries = [entry for entry in (*map(str, candidates), *ours, *STANDARD_PATH) if os.access(entry, os.X_OK)]
    return os.pathsep.join(dict.fromkeys(entry for entry in entries if is_shown(entry, mounts)))


def device_files() -> list[str]:
    """Device files of GPUs, NVIDIA's and AMD's."""
    found = [str(path) for path in sorted(Path("/dev").glob("nvidia*"))]
    return found + [path for path in ("/dev/kfd", "/dev/dri", "/dev/dxg") if Path(path).exists()]
