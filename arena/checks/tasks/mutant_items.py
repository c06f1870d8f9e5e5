"""The items about mutants, which no other check needs: results of ordinary checks outlive changes of this code.

`run.code_key` leaves out this module, and so what it alone imports.
"""

from __future__ import annotations

from collections.abc import Sequence

from arena.checks.tasks.mutation import Report, mutants_item, try_mutants
from arena.checks.tasks.omissions import omissions_item, try_omissions
from arena.checks.tasks.soundness import generator_for
from arena.judge.evaluate import JudgeContext
from arena.results.check import CheckItem, MutantFate
from arena.task.definition import Case, Task
from arena.task.numerics.reference import Reference


def check_mutants(
    task: Task, cases: Sequence[Case], reference: Reference, context: JudgeContext, most: int, report: Report
) -> tuple[list[CheckItem], tuple[MutantFate, ...]]:
    """Return an item for mutants of the kernel and one for omissions of inputs, and the fates of both."""
    fates = try_mutants(task, cases, reference, context, most, report)
    omissions = try_omissions(task, reference, generator_for(task), report)
    return [mutants_item(task, fates), omissions_item(omissions)], fates + omissions
