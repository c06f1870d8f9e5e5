"""The rules that a task keeps or gives a reason for under `exceptions`: their names, and at which level each holds.

The loader holds exceptions against these names; `arena.checks.tasks` checks the rules.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum


class RuleLevel(StrEnum):
    """How much a corpus demands of its tasks: `rules:` of its corpus.yaml."""

    OWN = "own"
    """What every task needs to be worth measuring; of a corpus without a corpus.yaml."""
    STRICT = "strict"
    """What the shipped corpus demands besides."""


@dataclass(frozen=True)
class TaskRule:
    """One rule. In `name` a word in capitals stands for a name of the task; `text` is the line of the docs."""

    name: str
    level: RuleLevel = RuleLevel.OWN
    text: str = ""


CPU_REACH = 256
"""one of the sizes at which kernels are commonly cut off, and the greatest that is cheap in every axis"""
TILES = (32, 64)
"""common lengths of a tile: the mask of a tile twice as long is left out where the size is a multiple of it"""
REACH, LEAST_KINDS, LEAST_HELDOUT, LEAST_HELDOUT_KINDS = 4, 4, 8, 5
LONGEST_NAME = 80
"""characters of the name of a task or a suite: names of files hold both, and a file system takes 255"""
STRUCTURAL = ("edge", "dtype", "structure")
IGNORES = "OUTPUT ignores INPUTS"
UNSTABLE = "unstable "
"""begins the name of an item for an unstable form"""
UNSTABLE_FORMS = (
    "softmax", "logsumexp", "softplus", "sigmoid", "tanh", "difference", "variance", "square", "cumprod", "expm1",
    "log1p", "accumulate",
)  # fmt: skip
"""`arena/task/numerics/unstable_forms.py` says what each is"""
DOMAIN_OF, DOMAIN_REACH = "domain of ", 256.0
"""the least number whose square overflows float16"""
OFFSETS_OF = "offsets of "
BFLOAT16_REACH = 65536.0
"""the least power of two that float16 cannot hold"""
RULES = (
    TaskRule("finished"),
    TaskRule("kinds"),
    TaskRule("timed cases"),
    TaskRule("axes vary"),
    TaskRule("small cases"),
    TaskRule("unlike others"),
    TaskRule("outputs vary"),
    TaskRule("tolerance"),
    TaskRule(IGNORES),
    TaskRule("drawn at once"),
    TaskRule("arithmetic"),
    TaskRule("well conditioned"),
    TaskRule("work"),
    TaskRule("operations"),
    TaskRule("margin"),
    TaskRule("headroom"),
    TaskRule("reach of AXIS", RuleLevel.STRICT, f"a case has 1/{REACH} of the greatest size of the domain, or more"),
    TaskRule(
        "CPU reach of AXIS",
        RuleLevel.STRICT,
        f"a case that the CPU platform runs has more than {CPU_REACH}, or the end of a domain that ends there; axes"
        " with a default need none",
    ),
    TaskRule(
        "sizes of AXIS",
        RuleLevel.STRICT,
        "a case that the CPU platform runs has each size that the axis lists in `values`",
    ),
    TaskRule(
        "tiles of AXIS",
        RuleLevel.STRICT,
        f"cases that the CPU platform runs have an odd multiple of each of {', '.join(map(str, TILES))}, where the"
        " domain admits it; axes with a default or `values` need none",
    ),
    TaskRule("held-out cases", RuleLevel.STRICT, f"at least {LEAST_HELDOUT} held-out cases"),
    TaskRule("held-out kinds", RuleLevel.STRICT, f"held-out cases of at least {LEAST_HELDOUT_KINDS} kinds"),
    TaskRule("production case", RuleLevel.STRICT, "a held-out case of the kind `production`"),
    TaskRule("scale_up case", RuleLevel.STRICT, "a held-out case of the kind `scale_up`"),
    TaskRule(
        "long structural case",
        RuleLevel.STRICT,
        f"a held-out case of the kind {', '.join(f'`{kind}`' for kind in STRUCTURAL)} that takes 20 µs or more on an"
        " H200; latency-bound tasks need none",
    ),
    TaskRule(
        f"{OFFSETS_OF}TENSOR",
        RuleLevel.STRICT,
        "a case has a tensor of more than 2³¹ elements, where the domain and 16 GiB admit it",
    ),
    TaskRule(
        "values case",
        RuleLevel.STRICT,
        "where an input is floating, a held-out case with [fills of its own](task-format.md#another-fill-in-one-case)",
    ),
    TaskRule(
        "unread memory",
        RuleLevel.STRICT,
        "what [`unread`](task-format.md#functions) names may be NaN without changing an answer",
    ),
    TaskRule(
        "unstable FORM",
        RuleLevel.STRICT,
        "a small case makes each [unstable form](#unstable-forms) of an operation wrong by 10 times the tolerance,"
        " `accumulate` by 1.2",
    ),
    TaskRule(
        f"{DOMAIN_OF}INPUT",
        RuleLevel.STRICT,
        f"small cases draw numbers beyond ±{DOMAIN_REACH:g}, in bfloat16 ±{BFLOAT16_REACH:.0f}, or half of their"
        " `domain`, and 0 where it ends there; a scalar has both signs",
    ),
)
_LEVELS = {rule.name: rule.level for rule in RULES}
_OF_AXES = ("reach of AXIS", "CPU reach of AXIS", "sizes of AXIS", "tiles of AXIS")
_OF_OTHERS = ("unstable FORM", f"{DOMAIN_OF}INPUT", f"{OFFSETS_OF}TENSOR")
_REACH = re.compile(r"^((?:(?:CPU )?reach|sizes|tiles) of )\w+$")
_DOMAIN = re.compile(rf"^{DOMAIN_OF}\w+$")
_OFFSETS = re.compile(rf"^{OFFSETS_OF}\w+$")
_UNSTABLE = re.compile(rf"^{UNSTABLE}({'|'.join(UNSTABLE_FORMS)})$")


def reason_for(exceptions: Mapping[str, str], rule: str) -> str:
    """Return the reason that a task gives for not keeping a rule, or an empty string.

    Raises:
        KeyError: there is no such rule, so that no task could give a reason.
    """
    level_of_rule(rule)
    return exceptions.get(rule, "")


def level_of_rule(name: str) -> RuleLevel:
    """Return the level of a rule by its name, with the name of an axis or a form in place. Raises `KeyError`."""
    for pattern, general in (
        (_REACH, r"\1AXIS"),
        (_UNSTABLE, "unstable FORM"),
        (_DOMAIN, f"{DOMAIN_OF}INPUT"),
        (_OFFSETS, f"{OFFSETS_OF}TENSOR"),
    ):
        name = pattern.sub(general, name)
    return _LEVELS[name]


def exception_problem(
    name: str, axes: Collection[str], results: Collection[str], inputs: Collection[str]
) -> tuple[str, list[str]] | None:
    """Return what is wrong with the name of an exception, and the names that it could have; None where it is a rule.

    Args:
        name: The name under `exceptions`.
        axes: The axes of the task.
        results: Its outputs and mutable inputs.
        inputs: Its inputs, scalars included.
    """
    output, ignores, ignored = name.partition(" ignores ")
    if ignores:
        if output not in results:
            return f"`{output}` is not a result of this task", [f"{one}{ignores}{ignored}" for one in results]
        unknown = [part.strip() for part in ignored.split(",") if part.strip() not in inputs]
        return (f"`{unknown[0]}` is not an input of this task", list(inputs)) if unknown else None
    known = [rule.name for rule in RULES if rule.name not in (IGNORES, *_OF_AXES, *_OF_OTHERS)]
    known += [name.replace("AXIS", axis) for name in _OF_AXES for axis in axes]
    known += [f"{UNSTABLE}{form}" for form in UNSTABLE_FORMS] + [f"{DOMAIN_OF}{one}" for one in inputs]
    known += [f"{OFFSETS_OF}{one}" for one in dict.fromkeys([*inputs, *results])]
    return None if name in known else ("is not a rule of `arena tasks check`", known)
