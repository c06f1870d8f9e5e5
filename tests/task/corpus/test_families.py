"""The families of the shipped tasks: near-duplicates share one, and no other task has its name by accident."""

from __future__ import annotations

from collections import defaultdict

from tests.shipped import shipped_tasks


def test_a_declared_family_has_several_operators_and_no_name_means_two_things() -> None:
    tasks = shipped_tasks()
    families: dict[str, set[str]] = defaultdict(set)
    for task in tasks.values():
        families[task.family].add(task.name)
    alone = [task.id for task in tasks.values() if families[task.family] == {task.name} != {task.family}]
    assert not alone, "a family of one operator has that operator's name"
    elsewhere = [task.id for task in tasks.values() if task.name in families and task.family != task.name]
    assert not elsewhere, "their names are families that they are not in"


def test_the_same_operator_of_two_task_types_is_one_family() -> None:
    tasks = shipped_tasks()
    shared = [task for task in tasks.values() if task.path != task.definition]
    assert shared
    for task in shared:
        assert task.family == tasks["/".join(task.definition.parts[-3:])].family
