"""Which judges a cluster gets, from what Ray says of its nodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from arena.errors import JudgeLost, UsageError
from arena.runs.executors import ray_cluster
from arena.runs.executors.ray_cluster import JudgePlaces, judge_places

MI300X = "AMD-Instinct-MI300X-OAM"


def node(gpus: int = 0, accelerator: str = "", alive: bool = True, judges: int = 0) -> dict[str, Any]:
    resources: dict[str, float] = {"CPU": 16.0, "memory": 1e9}
    if gpus:
        resources["GPU"] = float(gpus)
    if accelerator:
        resources[f"accelerator_type:{accelerator}"] = 1.0
    if judges:
        resources["arena_judge"] = float(judges)
    return {"Alive": alive, "Resources": resources}


def test_a_judge_for_each_gpu_of_one_type() -> None:
    nodes = [node(), node(8, "H200"), node(4, "H200"), node(8, "H200", alive=False), node(2, MI300X)]
    assert judge_places(nodes, "cuda") == JudgePlaces("cuda", "H200", 12)
    assert judge_places(nodes, "rocm") == JudgePlaces("rocm", MI300X, 2)
    assert judge_places(nodes[:3], "auto") == JudgePlaces("cuda", "H200", 12)
    assert judge_places(nodes, "auto", MI300X).platform == "rocm"
    nodes.append(node(4, "H100"))
    for platform, kind in (("cuda", "H100"), ("rocm", MI300X)):  # a run on both
        assert judge_places(nodes, platform, f"H100,{MI300X}").accelerator == kind
        assert judge_places(nodes, platform, "H100").accelerator == kind


def test_what_a_judge_asks_of_a_node() -> None:
    assert JudgePlaces("cuda", "H200", 12).demand == {
        "num_cpus": 1,
        "num_gpus": 1,
        "resources": {"accelerator_type:H200": 0.001},
    }
    assert JudgePlaces("cpu", "", 3).demand == {"num_cpus": 1, "num_gpus": 0, "resources": {"arena_judge": 1}}
    assert JudgePlaces("cuda", "", 1).demand["resources"] == {}


def test_the_cpu_platform_goes_by_a_resource() -> None:
    nodes = [node(judges=1), node(judges=2), node(8, "H200")]
    assert judge_places(nodes, "cpu") == JudgePlaces("cpu", "", 3)
    assert judge_places(nodes[:2], "auto") == JudgePlaces("cpu", "", 3)
    with pytest.raises(UsageError, match="no node offers the resource arena_judge"):
        judge_places([node(8, "H200")], "cpu")


@pytest.mark.parametrize(
    ("nodes", "platform", "accelerator", "said"),
    [
        ([node(8, "H200"), node(8, "H100")], "cuda", "", "8 × H100, 8 × H200: choose one with --accelerator"),
        ([node(8, "H200"), node(2, MI300X)], "auto", "", "choose one with --accelerator"),
        ([node(2, MI300X)], "cuda", "", f"no GPU for cuda; it has 2 × {MI300X}"),
        ([node(8, "H200")], "cuda", "H100", "no GPU for cuda H100; it has 8 × H200"),
        ([node(4, "Intel-GPU-Max-1550")], "auto", "", "no GPU for auto"),
        ([node()], "auto", "H100", "it has none"),
    ],
)
def test_nothing_is_guessed(nodes: list[dict[str, Any]], platform: str, accelerator: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        judge_places(nodes, platform, accelerator)


def test_a_judge_that_streams_nothing_more_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two references come, both progress; then there is silence, and no call without a limit."""
    answers, limits = iter([b"Pone", b"Ptwo"]), []

    def wait(references: list[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        limits.append(timeout)
        return ([], references) if len(limits) > 4 else (references, [])

    def get(reference: bytes, timeout: float) -> bytes:
        limits.append(timeout)
        return reference

    streaming = SimpleNamespace(remote=lambda request: answers)
    fake = SimpleNamespace(wait=wait, get=get, exceptions=SimpleNamespace(RayError=ZeroDivisionError))
    transport = object.__new__(ray_cluster.RayTransport)
    transport._ray, transport.where = fake, "node-7"
    transport._actor = SimpleNamespace(ask=SimpleNamespace(options=lambda num_returns: streaming))
    heard: list[bytes] = []
    monkeypatch.setattr(ray_cluster, "PROGRESS", b"P")
    with pytest.raises(JudgeLost, match="node-7 has said nothing for 3600 s"):
        transport.ask(b"", heard.append)
    assert heard == [b"one", b"two"] and set(limits) == {ray_cluster.SILENCE_S}
