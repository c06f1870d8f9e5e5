"""The tools of a rollout: evaluate and finish."""

from collections.abc import Awaitable, Callable
from typing import Any

import verifiers.v1 as vf

from arena import AsyncClient
from arena.errors import ArenaError, NotServed
from arena.integrations.asking import facts, is_refusal, when_free
from unseen_arena_env.connection import ArenaState, server


class ArenaToolset(vf.Toolset[vf.SharedToolsetConfig, ArenaState]):
    """Asks the server about the rollout's episode."""

    TOOL_PREFIX = "arena"

    async def setup(self) -> None:
        """Open the connections to the server."""
        self._client = await self._exit_stack.enter_async_context(AsyncClient(*server()))

    @vf.tool
    async def evaluate(self, kernel: str) -> str:
        """Judge a kernel, the whole text of its file, on the seen cases. The number of evaluations is limited."""
        episode = self.state.episode
        step, refused = await self._asked(lambda: self._client.evaluate(episode, kernel))
        return refused or f"{step.text.rstrip()}\nreward {step.reward:g}, or {step.bounded_reward:g} of 1"

    @vf.tool
    async def finish(self, kernel: str | None = None) -> str:
        """End the task with the verdict on this kernel, or on the best one so far, held-out cases included."""
        episode = self.state.episode
        final, refused = await self._asked(lambda: self._client.finish(episode, kernel))
        if not refused:
            self.state.final = facts(final)
        return refused or final.text

    async def _asked(self, call: Callable[[], Awaitable[Any]]) -> tuple[Any, str]:
        """Return the answer, or why there is none; a failure of the harness is kept for the end of the rollout."""
        failure, answer, said = "", None, ""
        try:
            answer = await when_free(call)
        except ArenaError as problem:
            said = str(problem)
            failure = "" if isinstance(problem, NotServed) and is_refusal(problem) else said
        self.state.failure = failure
        return answer, said


if __name__ == "__main__":
    ArenaToolset.run()
