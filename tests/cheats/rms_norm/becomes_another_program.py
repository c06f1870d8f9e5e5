"""expect: load_error. It becomes a Python of its own, in which PyTorch computes, and answers the judge (cheat 83).

Means nothing on a GPU: the program that it becomes is one for the CPU platform.
"""

import os
import sys

# <kernel>
PROGRAM = """
import importlib.util, os, socket, sys, torch
sys.path[:], folder, channel = %r, %r, %d
os.environ.pop("TRITON_INTERPRET", None)
spec = importlib.util.spec_from_file_location("arena", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules["arena"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["arena"])
from arena import platforms
from arena.processes import protocol, wire
from arena.worker.command_loop import CommandLoop

class Computed:
    def bind(self, binding):
        self.values = [] if binding is None else binding.values

    def call(self, index):
        x, weight, eps, y = self.values[index]
        y.copy_(torch.nn.functional.rms_norm(x.float(), (x.shape[1],), weight.float(), eps))

    def copy_back(self, index):
        pass

to_judge = wire.Channel(socket.socket(fileno=channel), protocol.ToWorker, takes_files=True)
served = CommandLoop(to_judge, platforms.platform("cpu"))
served._entry = Computed()
to_judge.send(protocol.Done(0.0))
os._exit(served.run())
"""
for number in os.listdir("/proc/self/fd"):
    path = f"/proc/self/fd/{number}"
    if os.path.islink(path) and os.readlink(path).startswith("socket:"):
        os.set_inheritable(int(number), True)
        told = PROGRAM % (sys.path, sys.modules["arena"].__path__[0], int(number))
os.execv(sys.executable, [sys.executable, "-c", told])


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
