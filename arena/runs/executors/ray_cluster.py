"""Judges on the nodes of a Ray cluster, one actor for each GPU; `ray_judge.py` is what runs there.

Ray places and starts actors, and says when one is gone. It neither restarts them nor repeats calls: a judge in place of
a lost one may be on another node, and has to join first.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arena.errors import InfrastructureError, JudgeLost, JudgeUnavailable, UsageError
from arena.extras import require
from arena.package import PACKAGE
from arena.processes import process
from arena.processes.printable import shortened
from arena.processes.python_child import python_code
from arena.results.environment import Environment
from arena.runs.executors.base import JudgesWanted
from arena.runs.executors.ray_judge import NICENESS, PROGRESS, JudgeActor, ray_hidden
from arena.runs.service.judge_pool import QUEUED_A_GPU, Evaluator, JudgePool
from arena.runs.service.remote import RemoteEvaluator, difference, joined
from arena.task.corpus.task_folder import load_task

CPU_RESOURCE = "arena_judge"
"""the resource by which a node says how many judges of the CPU platform it takes"""
_TYPE = "accelerator_type:"
_AMD, _INTEL = "AMD-", "Intel-"


@dataclass(frozen=True)
class JudgePlaces:
    """So many judges, each of which needs one GPU of a type, or one unit of the CPU resource."""

    platform: str
    accelerator: str
    count: int

    @property
    def queued(self) -> int:
        """How many requests each judge is given at once: on a GPU it compiles one while it measures another."""
        return 1 if self.platform == "cpu" else QUEUED_A_GPU

    @property
    def demand(self) -> dict[str, Any]:
        """The options of each judge's actor that say what it needs."""
        if self.platform == "cpu":
            return {"num_cpus": 1, "num_gpus": 0, "resources": {CPU_RESOURCE: 1}}
        resources = {f"{_TYPE}{self.accelerator}": 0.001} if self.accelerator else {}
        return {"num_cpus": 1, "num_gpus": 1, "resources": resources}


def judge_places(nodes: Sequence[Mapping[str, Any]], platform: str, accelerator: str = "") -> JudgePlaces:
    """Choose where judges run.

    Args:
        nodes: the nodes of the cluster as `ray.nodes()` lists them.
        platform: `cpu`, `cuda`, `rocm`, or `auto`: the one of the cluster's GPUs, else `cpu`.
        accelerator: a type of GPU as Ray calls it, or several with commas between them, one for each platform; a
            platform that none is of has one type only.

    Raises:
        UsageError: there is no such device, or a choice is left; the message lists what the cluster has.
    """
    alive = [node["Resources"] for node in nodes if node["Alive"]]
    gpus: dict[str, int] = {}
    for resources in alive:
        if count := int(resources.get("GPU", 0)):
            types = sorted(name.removeprefix(_TYPE) for name in resources if name.startswith(_TYPE))
            gpus[types[0] if types else ""] = gpus.get(types[0] if types else "", 0) + count
    listed = ", ".join(f"{count} × {name or 'GPU of no known type'}" for name, count in sorted(gpus.items()))
    if platform == "cpu" or (platform == "auto" and not gpus and not accelerator):
        judges = sum(int(resources.get(CPU_RESOURCE, 0)) for resources in alive)
        if not judges:
            example = f"`ray start --resources '{{\"{CPU_RESOURCE}\": 1}}'`"
            raise UsageError(
                f"no node offers the resource {CPU_RESOURCE} for the CPU platform: start one with {example}"
            )
        return JudgePlaces("cpu", "", judges)
    chosen = [name for name in accelerator.split(",") if name and platform in ("auto", _platform(name))]
    fitting = {
        name: count
        for name, count in gpus.items()
        if platform in ("auto", _platform(name)) and name in (chosen or [name]) and not name.startswith(_INTEL)
    }
    if not fitting:
        wanted = f"{platform} {accelerator}".strip()
        raise UsageError(f"the cluster has no GPU for {wanted}; it has {listed or 'none'}")
    if len(fitting) > 1:
        raise UsageError(f"the cluster has several types of GPU, {listed}: choose one with --accelerator")
    ((name, count),) = fitting.items()
    return JudgePlaces(_platform(name), name, count)


def _platform(accelerator: str) -> str:
    return "rocm" if accelerator.startswith(_AMD) else "cuda"


_PLACE_S = 60.0
"""for a judge at the start: others hold the device of one that takes longer"""
_RETURN_S = 600.0
"""for a judge in place of a lost one: a node may be starting again"""
SILENCE_S = 3600.0
"""a judge that says nothing for so long, no progress of an evaluation either, counts as lost"""
_CLOSE_S = 10.0
_PROBE_S = 60.0
_REASON_CHARACTERS = 200
_CLOSED = "the judges were closed"
_MODE, _TOKEN = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"
_LOOPBACK = ("127.", "localhost", "[::1]", "::1")
_HOW = (
    f"set {_MODE}=token on every node and here before Ray starts, with one token "
    "(`ray get-auth-token --generate`); see docs/evaluate/cluster.md"
)
_PROBE = """
import sys
from ray._raylet import GcsClient
from ray.exceptions import AuthenticationError
try:
    GcsClient(address=sys.argv[1]).internal_kv_keys(b"", b"session", timeout=20)
except AuthenticationError:
    raise SystemExit(7)
"""
_REFUSED = 7


class RayExecutor:
    """An existing cluster, or without an address one on this machine for the length of the run.

    It opens and closes this process' connection to Ray, which must have none of its own.
    """

    actor = JudgeActor
    """what runs on the nodes"""

    def __init__(self, address: str = "", accelerator: str = "") -> None:
        self._address, self._accelerator = address, accelerator
        self._uses = 0
        require_token(address)
        require("ray")

    def describe(self, wanted: JudgesWanted) -> str:
        """Say where judges are started."""
        return f"judges on the Ray cluster {self._address}" if self._address else "a Ray cluster on this machine"

    @contextmanager
    def judges(self, wanted: JudgesWanted) -> Iterator[JudgePool]:
        """Start a judge for each GPU, and stop them at the end; kill them when interrupted."""
        if tuple(wanted.devices) != (None,):
            raise UsageError("--devices is of use with --executor local only; Ray offers the GPUs that a node declares")
        tasks = {name: load_task(folder).content_hash for name, folder in wanted.tasks.items()}
        with self._connected() as nodes:
            chosen = judge_places(nodes, wanted.platform, self._accelerator)
            actors = Actors(self.actor, chosen, (chosen.platform, [str(folder) for folder in wanted.corpora]), tasks)
            try:
                pool = JudgePool(actors.start(), replace=actors.instead, queued=chosen.queued)
                with _interruptible(pool):
                    yield pool
            except BaseException:
                actors.close(kill=True)
                raise
            actors.close()

    @contextmanager
    def _connected(self) -> Iterator[list[dict[str, Any]]]:
        """Keep one connection for the judges of all platforms of a run; yields the nodes."""
        self._uses += 1
        try:
            if self._uses == 1:
                _connect(self._address)
            import ray

            with ray_hidden():
                yield ray.nodes()
        finally:
            self._uses -= 1
            if not self._uses and "ray" in sys.modules:
                sys.modules["ray"].shutdown()


class NotPlaced(JudgeLost):
    """An actor has ended before it had a node."""


class RayTransport:
    """Carries bytes to an actor."""

    def __init__(self, actor: Any) -> None:
        import ray

        self._ray, self._actor, self._killed = ray, actor, False
        self.where = ""

    def placed(self, timeout_s: float) -> None:
        """Wait until the actor has a node; raises `NotPlaced` where it was sent to one that had just died."""
        try:
            self.where = self._ray.get(self._actor.where.remote(), timeout=timeout_s).decode()
        except self._ray.exceptions.GetTimeoutError:
            raise JudgeLost(f"no node had room for a judge within {timeout_s:.0f} s: other work holds it") from None
        except self._ray.exceptions.RayError as problem:
            raise NotPlaced(str(_gone(problem))) from None

    def ask(self, request: bytes, on_progress: Callable[[bytes], None]) -> bytes:
        """Return the answer; raises `JudgeLost` where the actor, its node, or the way to it is gone or silent."""
        message = b""
        try:
            for reference in self._streamed(self._actor.ask.options(num_returns="streaming").remote(request)):
                message = self._ray.get(reference, timeout=SILENCE_S)
                if message.startswith(PROGRESS):
                    on_progress(message[1:])
        except self._ray.exceptions.RayError as problem:
            raise _gone(problem) from None
        return message[1:]

    def _streamed(self, references: Any) -> Iterator[Any]:
        """Yield what an actor streams as it comes. Raises `JudgeLost` where nothing comes for `SILENCE_S`."""
        while self._ray.wait([references], timeout=SILENCE_S)[0]:
            try:
                reference = next(references)
            except StopIteration:
                return
            yield reference
        raise JudgeLost(f"the judge on {self.where or 'a node'} has said nothing for {SILENCE_S:.0f} s")

    def close(self) -> None:
        """End the judge, and let its device go."""
        if self.where and not self._killed:
            with suppress(Exception):
                self._ray.get(self._actor.close.remote(), timeout=_CLOSE_S)
        self.kill()

    def kill(self) -> None:
        """Stop the actor at once; Ray ends the judge, which is its child."""
        self._killed = True
        with suppress(Exception):
            self._ray.kill(self._actor)


class Actors:
    """The actors of one run, all alike."""

    def __init__(
        self, kind: type[JudgeActor], chosen: JudgePlaces, arguments: tuple[str, list[str]], tasks: Mapping[str, str]
    ) -> None:
        import ray

        self._chosen, self._arguments, self._tasks = chosen, arguments, tasks
        threads = chosen.queued + 1  # the last to end it
        options = {**chosen.demand, "max_restarts": 0, "max_task_retries": 0, "max_concurrency": threads}
        self._kind = ray.remote(kind).options(**options)
        self._transports: list[RayTransport] = []
        self._lock, self._closed = threading.Lock(), False
        self._threads = ThreadPoolExecutor(max_workers=chosen.count)

    def start(self) -> list[RemoteEvaluator]:
        """Start a judge for each place, and return those that may work here and agree with most others.

        Raises:
            JudgeUnavailable: there is none; the message says why.
        """
        outcomes = list(self._threads.map(lambda _: self._tried(), range(self._chosen.count)))
        found = [one for one in outcomes if isinstance(one, RemoteEvaluator)]
        refused = [str(one) for one in outcomes if isinstance(one, InfrastructureError)]
        if found:
            agreed = most_common([one.environment for one in found])
            for one in tuple(found):
                if reason := difference(agreed, one.environment):
                    one.kill()
                    found.remove(one)
                    refused.append(f"the judge on {one.where} has {reason}")
        for text, count in Counter(refused).items():
            logging.getLogger(__name__).warning("refused (%d of %d): %s", count, self._chosen.count, text)
        if not found:
            raise JudgeUnavailable(f"no judge of the cluster can be used: {'; '.join(dict.fromkeys(refused))}")
        return found

    def instead(self, lost: Evaluator) -> RemoteEvaluator:
        """Return a judge in place of one that was lost, wherever Ray finds room; raises `InfrastructureError`."""
        try:
            fresh = self._threads.submit(self._one, _RETURN_S).result()
        except RuntimeError:
            raise JudgeUnavailable(_CLOSED) from None
        if reason := difference(lost.environment, fresh.environment):
            fresh.kill()
            raise JudgeLost(f"the judge on {fresh.where}, in place of a lost one, has {reason}")
        return fresh

    def close(self, *, kill: bool = False) -> None:
        """End all judges, or kill them; nothing speaks to Ray after it, which would start a cluster for that."""
        with self._lock:
            self._closed = True
        for transport in self._transports:
            transport.kill() if kill else transport.close()
        self._threads.shutdown()

    def _tried(self) -> RemoteEvaluator | InfrastructureError:
        try:
            return self._one(_PLACE_S)
        except InfrastructureError as problem:
            return problem

    def _one(self, timeout_s: float) -> RemoteEvaluator:
        """Raises `InfrastructureError`, and then leaves no actor."""
        transport = self._placed(timeout_s)
        try:
            return joined(transport, self._tasks)
        except InfrastructureError:
            transport.kill()
            raise

    def _placed(self, timeout_s: float, tries: int = 3) -> RayTransport:
        """Start an actor. Ray may send it to a node that has just died, until it has missed that node for long."""
        with self._lock:
            if self._closed:
                raise JudgeUnavailable(_CLOSED)
            transport = RayTransport(self._kind.remote(*self._arguments))
            self._transports.append(transport)
        try:
            transport.placed(timeout_s)
            return transport
        except JudgeLost as problem:
            transport.kill()
            if isinstance(problem, NotPlaced) and tries > 1:
                return self._placed(timeout_s, tries - 1)
            raise


@contextmanager
def _interruptible(pool: JudgePool) -> Iterator[JudgePool]:
    try:
        yield pool
    except KeyboardInterrupt:
        pool.cancel()
        raise


def _gone(problem: Exception) -> JudgeLost:
    last = ["", *str(problem).split("\n")][-1].strip()
    return JudgeLost(f"it is gone ({type(problem).__name__}: {shortened(last, _REASON_CHARACTERS)})")


def most_common(environments: Sequence[Environment]) -> Environment:
    """Return the environment that agrees with most of the others, the first of them where several do."""
    return max(environments, key=lambda one: sum(not difference(one, other) for other in environments))


def require_token(address: str) -> None:
    """Raise `UsageError` where a connection to a cluster elsewhere would be without token authentication."""
    if address.startswith("ray://"):
        raise UsageError(f"{address}: Ray's client is not supported; run on a node of the cluster, by its HOST:PORT")
    if address and not is_local(address) and os.environ.get(_MODE, "").lower() != "token":
        raise UsageError(f"{address}: whoever reaches a Ray cluster without a token runs code there; {_HOW}")


def is_local(address: str) -> bool:
    """Return whether an address names this machine alone."""
    return address.startswith(_LOOPBACK)


def _connect(address: str) -> None:
    """Connect to a cluster that refuses whoever has no token, or start one that does."""
    if not address and "ray" not in sys.modules:  # which reads these once; else it makes a token by itself
        os.environ.update({_MODE: "token", _TOKEN: secrets.token_hex(32), NICENESS: "0"})
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if not address:
        with chdir(_folder()):
            ray.init(address="local", include_dashboard=False, resources={CPU_RESOURCE: 1}, **quiet)
        return
    try:
        with chdir(_folder()):
            ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ray.exceptions.RayError) as failure:
        first = str(failure).splitlines()[0]
        raise JudgeUnavailable(f"no Ray cluster at {address} ({first}); is the token the same here?") from None
    if refuses_strangers(ray.get_runtime_context().gcs_address):
        return
    problem = f"the cluster at {address} takes connections without a token; {_HOW}"
    if not is_local(address):
        raise UsageError(problem)
    logging.getLogger(__name__).warning("whoever reaches this machine can run code on it: %s", problem)


def _folder() -> Path:
    """Return where to connect from: Ray's processes import from this folder first, so it is not the user's own."""
    return Path("/") if PACKAGE.parent.name in ("site-packages", "dist-packages") else PACKAGE.parent


def refuses_strangers(address: str) -> bool:
    """Return whether a cluster refuses a client without a token; one that needs none takes clients with one, too."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    command = python_code(_PROBE, address)
    found = process.run(command, timeout_s=_PROBE_S, env={**environment, _MODE: "disabled"})
    return found.returncode == _REFUSED
