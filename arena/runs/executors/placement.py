"""Judges on the nodes of a Ray cluster: one for each GPU of one type, or one for each unit of a CPU resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arena.errors import UsageError
from arena.runs.service.judge_pool import QUEUED_A_GPU

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
