"""A bare model as an agent: its answers hold kernels, which are evaluated for it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from arena.agents import tripwire
from arena.agents.base import Agent, EvaluationService, Submission, Workspace, digest_of
from arena.agents.budget import Budget, Reached, Stopwatch
from arena.agents.chat.definition import LIBRARY, ModelDefinition, lacks, library_version, target_of
from arena.agents.chat.endpoint import ChatEndpoint
from arena.agents.chat.pausable_loop import PausableLoop
from arena.agents.chat.prompt import files_of, long_headers, prompt_of
from arena.agents.chat.sampling import ChatRequest, Sampling
from arena.agents.parsers.chat_answers import ChatAnswers
from arena.agents.recorder import RecordedService, Recorder
from arena.agents.redaction import Redactor
from arena.errors import InfrastructureError
from arena.results.session import Ending, Limits, Session
from arena.results.transcripts import TranscriptWriter

ISOLATION = "none needed: a model runs no code"
_HEADERS = "OPENAI_CUSTOM_HEADERS"


class ModelAgent(Agent):
    """Asks a model as its definition says. `environ`: where addresses and keys are taken from."""

    def __init__(
        self,
        name: str,
        definition: ModelDefinition,
        model: str = "",
        limits: Mapping[str, Any] = MappingProxyType({}),
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """`model` and `limits` replace the definition's, as far as they are given."""
        self.name = name
        changed = replace(definition.limits, **limits)
        self._definition = replace(definition, model=model or definition.model, limits=changed)
        self._environ = environ

    @property
    def limits(self) -> Limits:
        """Return what one trial may use up, as the definition and the run configuration say."""
        return self._definition.limits

    def program(self) -> str:
        """Return a digest of its definition and model, and of the code that asks."""
        described = replace(self._definition, limits=Limits(), path=Path())
        return digest_of(repr(described), *sorted(Path(__file__).parent.glob("*.py")))

    def lacks(self) -> str:
        """Return what is missing: the library, a variable, or the name of a model."""
        missing = lacks(self._definition, self._environ)
        return missing or ("" if self._definition.model else "name a `model` in the run configuration, or --model")

    def work(self, workspace: Workspace, service: EvaluationService) -> Submission:
        """Ask for kernels, have each evaluated, and hand in the one that counts.

        Raises `InfrastructureError` where no answer ever came, and where something is missing here.
        """
        missing = self.lacks()
        if missing:
            raise InfrastructureError(f"agent {self.name}: {missing}")
        with ExitStack() as stack:
            writer = stack.enter_context(TranscriptWriter(workspace.transcript, workspace.candidate.name))
            budget = Budget(self.limits, self._definition.price)
            recorder = Recorder(writer, Redactor(self._secrets()), ChatAnswers(), budget)
            session, left = self._session(workspace, service, recorder)
            kernel, why = service.choose(recorder.clean_kernel(left))
        if kernel is None:
            return Submission(None, why, session)
        workspace.candidate.write_bytes(kernel)
        return Submission(workspace.candidate, why, session)

    def _session(
        self, workspace: Workspace, service: EvaluationService, recorder: Recorder
    ) -> tuple[Session, bytes | None]:
        """Return what is recorded of the session, and the kernel that it left."""
        loop = PausableLoop()
        watch = Stopwatch(loop)
        recorder.begin(watch)
        sampling = Sampling(
            self._definition, self._request(workspace), RecordedService(service, recorder), recorder, loop, watch
        )
        sampling.write("settings", text=self._settings())
        with service.attend(watch):
            target = target_of(self._definition, self._environ)
            endpoint = ChatEndpoint(
                self._definition, target, recorder.clean, lambda text: sampling.write("note", text=text, failed=True)
            )
            reached = loop.run(sampling.run(endpoint)) or Reached(Ending.FAILED, "the session was cancelled")
            active_s, paused_s = watch.active_s(), watch.paused_s()
        recorder.close()
        if reached.ending is Ending.FAILED and not sampling.answers:
            raise InfrastructureError(f"agent {self.name} did not get going: {recorder.clean(reached.detail)}")
        session = Session(
            agent=self._definition.name,
            version=f"{LIBRARY} {library_version()}",
            ending=reached.ending,
            detail=recorder.clean(reached.detail),
            active_s=active_s,
            paused_s=paused_s,
            isolation=ISOLATION,
            model=recorder.model or recorder.clean(target.model),
            evaluations=tuple(recorder.evaluations),
            refused=recorder.refused,
            tokens=recorder.budget.tokens,
            cost_usd=recorder.budget.cost_usd,
            events=len(recorder.events),
            flags=tripwire.find(recorder.events, workspace.task, own=()),
        )
        return session, sampling.last_kernel

    def _request(self, workspace: Workspace) -> ChatRequest:
        kernel, entry = workspace.candidate.name, workspace.task.entry
        text = prompt_of(workspace.folder, kernel, entry, self._definition.turns)
        return ChatRequest(text, kernel, entry, long_headers(files_of(workspace.folder)))

    def _settings(self) -> str:
        """Return how the model is asked, as JSON: what a reader needs to repeat the session."""
        given, target = self._definition, target_of(self._definition, self._environ)
        fields = ("temperature", "max_tokens", "options", "samples", "turns", "parallel", "retries", "silence_s")
        settings = {name: getattr(given, name) for name in fields if getattr(given, name) not in (None, {})}
        return json.dumps({"base_url": target.url, "model": target.model, **settings})

    def _secrets(self) -> dict[str, str]:
        """Return the key, and the headers that the library takes from the environment."""
        key = {self._definition.api_key_env: target_of(self._definition, self._environ).key}
        lines = (line.partition(":") for line in self._environ.get(_HEADERS, "").split("\n"))
        headers = {f"{_HEADERS} {name.strip()}": text.strip() for name, _, text in lines if text.strip()}
        return {**headers, **{name: text for name, text in key.items() if name and text}}
