"""A command in this package's sandbox, where there is no bubblewrap; imports next to nothing, to start fast."""

from __future__ import annotations

import json
import os
from typing import NoReturn

from arena.processes.sandbox import Namespaces, confinement, enter
from arena.processes.sandbox.landlock import Allowed
from arena.processes.sandbox.seccomp import Strictness


def main(written: str) -> NoReturn:
    """Enter the sandbox and become the command; without one, print the level in force."""
    order = json.loads(written)
    level = enter(Namespaces())
    files = Allowed(tuple(order["read"]), tuple(order["write"]), tuple(order["listed"]))
    level += confinement.confine(confinement.Confinement(strictness=Strictness.PROGRAM, files=files))
    command = order["command"]
    if not command:
        os.write(1, level.encode())
        os._exit(0)
    try:
        os.execve(command[0], command, order["environment"])
    except OSError as problem:
        os.write(2, f"{command[0]}: {problem.strerror}\n".encode())
        os._exit(127)
