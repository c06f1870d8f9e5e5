"""What every adapter must answer for the same evaluations: rewards by kernel and scheme."""

from __future__ import annotations

from arena.results.reward import bounded_reward, reward
from arena.results.verdict import Status

SPEEDUPS = {"# slow": 0.5, "# same": 1.0, "# fast": 2.0}
"""of the kernels that pass with the fake judge"""
WRONG = "WRONG"


def changed(kernel: str) -> str:
    """Return a Triton baseline with one more statement, since an unchanged one counts as not handed in."""
    return f"{kernel}\nCHANGED = True\n"


def expected(kernel: str, scheme: str) -> float:
    """Return the reward of one of these kernels."""
    speedup = SPEEDUPS.get(kernel)
    if scheme == "bounded":
        return bounded_reward(speedup)
    return reward(Status.WRONG_RESULT if speedup is None else Status.PASSED, speedup)
