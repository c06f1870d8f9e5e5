"""Unseen Arena for verifiers: a taskset over `arena serve`."""

from unseen_arena_env.taskset import UnseenArenaTaskset

__all__ = ["UnseenArenaTaskset"]
