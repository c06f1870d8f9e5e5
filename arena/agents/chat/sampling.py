"""The conversations of one trial: independent samples, each of several answers with feedback in between."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import comb
from typing import Any

from arena.agents.base import Evaluates, Feedback
from arena.agents.budget import Reached, Stopwatch
from arena.agents.chat import prompt
from arena.agents.chat.definition import ModelDefinition
from arena.agents.chat.endpoint import ChatEndpoint, EndpointFailure, Message, ModelAnswer
from arena.agents.chat.pausable_loop import PausableLoop
from arena.agents.recorder import Recorder
from arena.results.session import Ending
from arena.results.verdict import CORRECT

_FENCE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)$")
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>", re.IGNORECASE)
_THOUGHT_END = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_TAGS = {
    ".py": {"python", "py", "python3", "triton"},
    ".hip": {"hip", "cpp", "c++", "cc", "cxx", "cuda", "cu", "c", "hpp"},
}


@dataclass(frozen=True)
class CodeBlock:
    """A fenced block. `closed`: whether its end was there."""

    tag: str
    text: str
    closed: bool


def without_thoughts(answer: str) -> str:
    """Return an answer without what the model thought at its beginning; empty where that has no end."""
    text = _THOUGHT_END.sub("", answer)  # some servers leave the opening tag out
    return "" if _THOUGHT.match(text) else text


def code_blocks(text: str) -> list[CodeBlock]:
    """Return the fenced blocks of an answer in order; a fence within a longer or another fence is text."""
    return list(_blocks(text.replace("\r\n", "\n").split("\n")))


def _blocks(lines: list[str]) -> Iterator[CodeBlock]:
    opened, tag, content = "", "", list[str]()
    for line in lines:
        found = _FENCE.match(line)
        info = found["info"].strip() if found else ""
        if not opened:
            if found and "`" not in info:
                opened, tag, content = found["fence"], _tag(info), []
        elif found and not info and found["fence"].startswith(opened):
            yield CodeBlock(tag, _text(content), closed=True)
            opened = ""
        else:
            content.append(line)
    if opened:
        yield CodeBlock(tag, _text(content), closed=False)


def _tag(info: str) -> str:
    words = info.replace("{", " ").replace(":", " ").split()
    return words[0].lstrip(".").lower() if words else ""


def _text(lines: list[str]) -> str:
    """Return a block's text, without the indentation that all lines share in a list, and with one end of line."""
    filled = [line for line in lines if line.strip()]
    shared = min((len(line) - len(line.lstrip(" ")) for line in filled), default=0)
    return "\n".join(line[shared:] for line in lines).rstrip() + "\n"


def kernel_in(answer: str, entry: str, suffix: str, *, cut_off: bool = False) -> str | None:
    """Return the kernel file that an answer holds, or None.

    Args:
        answer: what the model said.
        entry: the function that the file must define.
        suffix: `.py` or `.hip`.
        cut_off: whether the answer ended at a limit, so that a block without an end is incomplete.

    Returns:
        Of the blocks that define the entry, the last; else the last in the file's language; else the last without a
        language.
    """
    blocks = [block for block in code_blocks(without_thoughts(answer)) if block.text.strip()]
    whole = [block for block in blocks if block.closed or not cut_off]
    defining = [block for block in whole if _defines(block.text, entry, suffix)]
    spelled = [block for block in whole if block.tag in _TAGS[suffix]]
    chosen = defining or spelled or [block for block in whole if not block.tag]
    return chosen[-1].text if chosen else None


def _defines(code: str, entry: str, suffix: str) -> bool:
    name = re.escape(entry)
    if suffix == ".py":
        return re.search(rf"^(?:async\s+)?def\s+{name}\s*\(|^{name}\s*=", code, re.MULTILINE) is not None
    return re.search(rf"\b{name}\s*\([^;{{}}]*\)\s*(?:noexcept\s*)?\{{", code) is not None


_POLL_S = 0.1
_NOTHING_SAID = "(no answer)"
"""in place of an empty one, which some endpoints refuse in a conversation"""


@dataclass(frozen=True)
class ChatRequest:
    """The same for all samples: the first message, the file's name, and the function that it defines."""

    prompt: str
    kernel: str
    entry: str
    headers: Mapping[str, str] = field(default_factory=dict)
    """those that the first message only names, by path; an answer may ask for them"""

    @property
    def suffix(self) -> str:
        """The end of the file's name."""
        return f".{self.kernel.rpartition('.')[2]}"


@dataclass
class Conversation:
    """One conversation. `complete`: it had all its answers, and each kernel in them was evaluated.

    `failure`: the endpoint's, which ended it.
    """

    number: int
    correct: bool = False
    complete: bool = False
    refused: bool = False
    failure: str = ""


@dataclass
class Sampling:
    """Asks, evaluates and answers until every sample is complete or a limit is reached."""

    definition: ModelDefinition
    request: ChatRequest
    service: Evaluates
    recorder: Recorder
    loop: PausableLoop
    watch: Stopwatch
    samples: list[Conversation] = field(default_factory=list)
    answers: int = 0
    last_kernel: bytes | None = None
    """the last one that was evaluated; else the last one in an answer"""
    _uncounted: bool = False

    async def run(self, endpoint: ChatEndpoint) -> Reached:
        """Return how it ended. Raises what the evaluation service raises."""
        self.samples = [Conversation(number + 1) for number in range(self.definition.samples)]
        self.write("prompt", text=self.request.prompt)
        async with endpoint:
            tasks = [asyncio.create_task(self._converse(sample, endpoint)) for sample in self.samples]
            try:
                reached = await self._follow(tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        if reached is not None:
            self.write("note", text=f"ended by the harness: {reached.detail}", failed=True)
            return reached
        return self._ended()

    async def _follow(self, tasks: Sequence[asyncio.Task[None]]) -> Reached | None:
        """Wait for all samples; returns the first limit that is reached."""
        pending = set(tasks)
        while pending:
            done, pending = await asyncio.wait(pending, timeout=_POLL_S)
            for task in done:
                task.result()
            reached = self.recorder.budget.reached(self.watch.active_s(), 0)
            if reached is not None and pending:
                return reached
        return None

    async def _converse(self, sample: Conversation, endpoint: ChatEndpoint) -> None:
        """One sample: ask, evaluate, say what came of it, as often as the definition says."""
        messages: list[Message] = [{"role": "user", "content": self.request.prompt}]
        for turn in range(1, self.definition.turns + 1):
            where = f"sample {sample.number}, turn {turn}"
            used_up = len(self.recorder.evaluations) >= self.recorder.budget.limits.evaluations
            if used_up and self.last_kernel is not None:
                self.write("note", where, text="not asked: all evaluations are used up", failed=True)
                return
            try:
                answer = await endpoint.ask(messages)
            except EndpointFailure as problem:
                sample.failure = str(problem)
                self.write("note", where, text=f"the endpoint failed: {problem}", failed=True)
                return
            self._record(answer, where)
            reply = await self._reply(sample, answer, where, self.definition.turns - turn)
            answered = without_thoughts(answer.text).strip() or _NOTHING_SAID
            messages += [{"role": "assistant", "content": answered}, {"role": "user", "content": reply}]
        sample.complete = not sample.refused

    async def _reply(self, sample: Conversation, answer: ModelAnswer, where: str, left: int) -> str:
        """Evaluate the kernel in an answer; returns what the model is told of it."""
        name = self.request.kernel
        code = kernel_in(answer.text, self.request.entry, self.request.suffix, cut_off=answer.cut_off)
        if code is None:
            asked = "" if answer.cut_off else prompt.asked_headers(answer.text, self.request.headers)
            if asked:
                self.write("reply", where, text=asked)
                return asked
            text = prompt.no_code(name, cut_off=answer.cut_off, max_tokens=self.definition.max_tokens)
            self.write("reply", where, text=text, failed=True)
            return text
        kernel = code.encode("utf-8", "replace")
        feedback = await asyncio.get_running_loop().run_in_executor(self.loop.jobs, self._evaluate, kernel, where)
        correct = feedback.evaluated is not None and feedback.evaluated.status in CORRECT
        sample.correct = sample.correct or correct
        sample.refused = sample.refused or feedback.evaluated is None
        return prompt.next_turn(name, feedback.text, left, passed=correct)

    def _evaluate(self, kernel: bytes, where: str) -> Feedback:
        """One evaluation, in the thread for it: it is finished and recorded also where its sample is cancelled."""
        feedback = self.service.evaluate(kernel)
        if feedback.evaluated is not None or not self.recorder.evaluations:
            self.last_kernel = kernel
        if feedback.evaluated is not None:
            self.write("evaluation", where, number=feedback.evaluated.number)
        return feedback

    def _record(self, answer: ModelAnswer, where: str) -> None:
        self.answers += 1
        tokens = {"input": answer.tokens.input, "output": answer.tokens.output, "cached": answer.tokens.cached}
        self.write(
            "answer",
            where,
            model=answer.model,
            text=answer.text,
            reasoning=answer.reasoning,
            finish=answer.finish,
            tokens=tokens,
            cost_usd=answer.cost_usd,
        )
        if not answer.counted and not self._uncounted:
            self._uncounted = True
            self.write("note", text="the endpoint reports no tokens: limits on tokens and cost have no effect")

    def _ended(self) -> Reached:
        """Return how the session ended where no limit did: failed where the endpoint ended a sample."""
        failures = [sample.failure for sample in self.samples if sample.failure]
        if failures:
            many = f"{len(failures)} of {len(self.samples)} samples: " if len(self.samples) > 1 else ""
            return Reached(Ending.FAILED, f"the endpoint failed: {many}{failures[-1]}")
        return Reached(Ending.FINISHED, pass_at_k_line(self.samples))

    def write(self, kind: str, where: str = "", **data: Any) -> None:
        """Put one line into the transcript."""
        self.recorder.line("stdout", json.dumps({"type": kind, "conversation": where, **data}))


def pass_at_k_line(samples: Sequence[Conversation]) -> str:
    """Return the unbiased pass@k over the samples of one trial; empty for a single one."""
    count, correct = len(samples), sum(sample.correct for sample in samples)
    if count < 2:
        return ""
    head = f"{correct} of {count} samples correct on the seen cases"
    if not all(sample.complete for sample in samples):
        return f"{head}; no pass@k, since some were not completed"
    sizes = [2**power for power in range(count.bit_length()) if 2**power <= count]
    chances = (f"pass@{k} {1 - comb(count - correct, k) / comb(count, k):.3g}" for k in sizes)
    return f"{head}: {', '.join(chances)}"
