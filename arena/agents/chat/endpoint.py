"""One request to an endpoint of chat completions: streamed, repeated where that may help, with its tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from arena.agents.chat.definition import ModelDefinition, ModelTarget
from arena.results.session import Tokens

if TYPE_CHECKING:
    from types import TracebackType

    from openai import AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk

Message = Mapping[str, str]
"""`role` and `content`"""
MOST_CHARACTERS = 4 << 20
"""of one answer; an endpoint that sends more has failed"""
_NO_KEY = "none"
_CONNECT_S = 30.0
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 8.0
_ERROR_CHARACTERS = 500
_REASONING = ("reasoning_content", "reasoning")
"""Names under which endpoints send what a model thinks."""


class EndpointFailure(Exception):
    """The endpoint gave no answer, after every retry. The message says why."""


class _BrokenAnswer(Exception):
    """An answer began and did not end, or is no chat completion; another request may do better."""


@dataclass(frozen=True)
class ModelAnswer:
    """One answer of a model. `finish`: why it ended, in the endpoint's word; `counted`: whether it reports tokens."""

    text: str
    reasoning: str
    finish: str
    model: str
    tokens: Tokens
    cost_usd: float
    counted: bool

    @property
    def cut_off(self) -> bool:
        """Return whether the answer ended at the limit on its tokens."""
        return self.finish == "length"


class ChatEndpoint:
    """Sends requests as a definition says; an async context manager.

    `clean` takes credentials out of what an endpoint says; `note` gets each failure after which it is asked again.
    """

    def __init__(
        self, definition: ModelDefinition, target: ModelTarget, clean: Callable[[str], str], note: Callable[[str], None]
    ) -> None:
        self._definition, self._target, self._clean, self._note = definition, target, clean, note
        self._places = asyncio.Semaphore(definition.parallel)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Open the client; nothing of the caller's environment but proxies and OPENAI_CUSTOM_HEADERS goes into it."""
        import openai

        async def note_failure(response: Any) -> None:
            if response.status_code >= 400:
                self._note(f"the endpoint answered {response.status_code} {response.reason_phrase}".rstrip())

        http_client = openai.DefaultAsyncHttpx2Client(event_hooks={"response": [note_failure]})
        client = openai.AsyncOpenAI(
            base_url=self._target.url,
            api_key=self._target.key or _NO_KEY,
            admin_api_key="",
            webhook_secret="",
            max_retries=self._definition.retries,
            timeout=openai.Timeout(self._definition.silence_s, connect=_CONNECT_S),
            http_client=http_client,
        )
        client.organization = client.project = None  # else OPENAI_ORG_ID and OPENAI_PROJECT_ID go to every endpoint
        self._client: AsyncOpenAI = await self._stack.enter_async_context(client)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Close every connection."""
        await self._stack.aclose()

    async def ask(self, messages: Sequence[Message]) -> ModelAnswer:
        """Return the model's answer. Raises `EndpointFailure`."""
        async with self._places:
            for attempt in range(self._definition.retries + 1):
                try:
                    return await self._answer(await self._begin(messages))
                except _BrokenAnswer as problem:
                    failure = str(problem)
                if attempt < self._definition.retries:
                    self._note(f"{failure}; its tokens are not known; asked again")
                    await asyncio.sleep(min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**attempt))
        raise EndpointFailure(failure)

    async def _begin(self, messages: Sequence[Message]) -> AsyncStream[ChatCompletionChunk]:
        """Send the request. The library itself repeats it after 408, 409, 429, 5xx and lost connections."""
        import openai

        given = self._definition
        limits = {"temperature": given.temperature, "max_tokens": given.max_tokens}
        body: dict[str, Any] = {name: number for name, number in limits.items() if number is not None}
        if given.options:
            body["extra_body"] = dict(given.options)
        create: Any = self._client.chat.completions.create
        try:
            stream: AsyncStream[ChatCompletionChunk] = await create(
                model=self._target.model,
                messages=list(messages),
                stream=True,
                stream_options={"include_usage": True},
                **body,
            )
        except (openai.OpenAIError, ValueError) as problem:
            raise EndpointFailure(self._described(problem)) from None
        return stream

    async def _answer(self, stream: AsyncStream[ChatCompletionChunk]) -> ModelAnswer:
        """Read a stream to its end."""
        import openai

        pieces = _Pieces()
        try:
            async with stream:
                async for chunk in stream:
                    pieces.add(chunk)
        except (openai.OpenAIError, ValueError, TypeError, AttributeError, RecursionError) as problem:
            raise _BrokenAnswer(f"the answer broke off: {self._described(problem)}") from None
        if not pieces.finish:
            fault = "ended early" if pieces.begun else "holds no choice"
            raise _BrokenAnswer(f"the endpoint's answer {fault}")
        return pieces.answer(self._target.model)

    def _described(self, problem: Exception) -> str:
        """Return one line about an error of the library, with what the endpoint says; cut only once it is clean."""
        cause = problem.__cause__
        words = [str(problem) or type(problem).__name__, f"({cause})" if cause is not None and str(cause) else ""]
        return self._clean(" ".join(" ".join(words).split()))[:_ERROR_CHARACTERS]


@dataclass
class _Pieces:
    """The pieces of one answer as they come. Only text counts as text: an endpoint may send anything."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    finish: str = ""
    begun: bool = False
    model: str = ""
    usage: Any = None
    characters: int = 0

    def add(self, chunk: Any) -> None:
        """Take one piece; only the first choice is read."""
        self.model = _text(getattr(chunk, "model", "")) or self.model
        self.usage = getattr(chunk, "usage", None) or self.usage
        for choice in getattr(chunk, "choices", None) or ():
            if (getattr(choice, "index", 0) or 0) != 0:
                continue
            self.begun = True
            delta = getattr(choice, "delta", None)
            self._keep(self.text, _text(getattr(delta, "content", "")) or _text(getattr(delta, "refusal", "")))
            self._keep(self.reasoning, next(filter(None, (_text(getattr(delta, name, "")) for name in _REASONING)), ""))
            self.finish = _text(getattr(choice, "finish_reason", "")) or self.finish

    def _keep(self, where: list[str], piece: str) -> None:
        self.characters += len(piece)
        if self.characters > MOST_CHARACTERS:
            raise ValueError(f"more than {MOST_CHARACTERS} characters")
        if piece:
            where.append(piece)

    def answer(self, asked: str) -> ModelAnswer:
        """Return what came."""
        details = getattr(self.usage, "prompt_tokens_details", None)
        tokens = Tokens(
            _count(getattr(self.usage, "prompt_tokens", 0)),
            _count(getattr(self.usage, "completion_tokens", 0)),
            _count(getattr(details, "cached_tokens", 0)),
        )
        cost = getattr(self.usage, "cost", 0)  # some proxies report it, in US dollars
        cost_usd = float(cost) if isinstance(cost, int | float) and cost > 0 else 0.0
        text, reasoning = "".join(self.text), "".join(self.reasoning)
        return ModelAnswer(text, reasoning, self.finish, self.model or asked, tokens, cost_usd, bool(tokens.total))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
