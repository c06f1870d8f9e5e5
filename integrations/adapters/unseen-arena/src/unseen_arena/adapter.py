"""The adapter class. Templates and scripts are those of the package `unseen-arena`, `arena/integrations/harbor`."""

from __future__ import annotations

from pathlib import Path

from arena.cli.tasks_prompt import environment_here
from arena.errors import UsageError
from arena.integrations.harbor import HarborSettings, Layout
from arena.integrations.harbor.folder import export
from arena.results.session import Limits
from arena.task.corpus.corpora import open_corpora


class UnseenArenaAdapter:
    """Write task folders.

    Args:
        output_dir: created where it does not exist.
        limit: the first N tasks alone.
        overwrite: replace folders that were written before.
        task_ids: names of folders, such as `hip2hip__modules__softmax`, or ids with slashes; None: all.
        layout: where the judge is, `url` or `sidecar`.
        platform: that the instructions name, and that of a sidecar: `auto`, `cpu`, `cuda` or `rocm`.
    """

    def __init__(
        self,
        output_dir: Path,
        limit: int | None = None,
        overwrite: bool = False,
        task_ids: list[str] | None = None,
        layout: str = "url",
        platform: str = "auto",
    ) -> None:
        self.output_dir, self.limit, self.overwrite, self.task_ids = output_dir, limit, overwrite, task_ids
        self.layout, self.platform = Layout(layout), platform

    def run(self) -> None:
        """Write the folders. Raises `UsageError` for a name that is no task's."""
        environment = environment_here(self.platform)
        settings = HarborSettings(self.layout, Limits(), environment.device.platform, "python:3.12-slim", 0)
        corpora = open_corpora()
        wanted = {name.replace("__", "/") for name in self.task_ids or corpora.ids}
        if unknown := wanted - set(corpora.ids):
            raise UsageError(f"no such task: {', '.join(sorted(unknown))}")
        chosen = [task for task in corpora.ids if task in wanted]
        for task in map(corpora.load, chosen[: self.limit]):
            export(task, self.output_dir, environment, settings, self.overwrite)
