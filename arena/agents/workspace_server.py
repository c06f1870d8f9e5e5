"""The socket behind `./evaluate`: kernels in, the judge's feedback out. The peer is untrusted.

The protocol is that of `arena serve`, of which one request is answered here: POST /episodes/workspace/evaluate with
`{"kernel": str, "profile": bool}`, answered with `{"text": str, "result": object}` or `{"error": str}`.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from arena.agents.base import Evaluates, Feedback
from arena.errors import InfrastructureError, UsageError
from arena.processes.http_server import EvaluationServer, Refused, body_of, kernel_bytes

if TYPE_CHECKING:
    from starlette.requests import Request

PATH = "/episodes/workspace/evaluate"
MAX_WAITING = 32


class EvaluateRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Body of a request to evaluate a kernel."""

    kernel: str
    profile: bool = False


class WorkspaceServer:
    """Answers at a Unix socket as long as it is open; a context manager.

    Requests reach the service one at a time, in the order in which they arrived in full. A peer that closed its
    connection before its turn is passed over. Closing does not wait for a running evaluation, which ends unanswered.
    `request_s`: how long a request may take to arrive; long, since peers stand still while a judge measures.
    """

    def __init__(self, service: Evaluates, path: Path, *, request_s: float = 300.0) -> None:
        self._service, self._request_s = service, request_s
        self._turn = asyncio.Lock()
        self._failure: Exception | None = None
        self.waiting = 0
        """requests that wait for their turn or their answer"""
        self._server = EvaluationServer(
            {("POST", PATH): self._evaluate}, path=path, mode=0o666, head_s=request_s, most_silent=MAX_WAITING
        )

    @property
    def failure(self) -> Exception | None:
        """The last exception that the service raised, which is a fault of the harness; None as it should be."""
        return self._failure

    def __enter__(self) -> Self:
        """Listen; whoever can enter the socket's folder may connect. Raises `InfrastructureError` where it cannot."""
        try:
            self._server.__enter__()
        except UsageError as problem:
            raise InfrastructureError(str(problem)) from None
        return self

    def __exit__(self, *_: object) -> None:
        """Close every connection, and return at once."""
        self._server.__exit__()

    async def _evaluate(self, request: Request) -> object:
        if self.waiting >= MAX_WAITING:
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, f"{MAX_WAITING} calls of ./evaluate are waiting: try later")
        self.waiting += 1
        try:
            asked = await body_of(request, EvaluateRequest, within_s=self._request_s)
            kernel = kernel_bytes(asked.kernel)
            async with self._turn:
                if await request.is_disconnected():
                    raise Refused(HTTPStatus.BAD_REQUEST, "the connection was closed")
                feedback = await self._feedback(kernel, asked.profile)
            return {"text": feedback.text, "result": msgspec.Raw(feedback.content)}
        finally:
            self.waiting -= 1

    async def _feedback(self, kernel: bytes, profile: bool) -> Feedback:
        from anyio.to_thread import run_sync

        try:
            return await run_sync(self._service.evaluate, kernel, profile, abandon_on_cancel=True)
        except Exception as problem:
            self._failure = problem
            text = "the judge failed, which says nothing about the kernel: try once more"
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, text) from None
