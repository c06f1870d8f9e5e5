"""`arena doctor --quick`: decisions fed with bad values, evidence that cannot be had, and a real run."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from arena.checks.doctor import candidates as c
from arena.checks.doctor import items
from arena.checks.doctor.candidates import CANDIDATES
from arena.checks.doctor.children import ask_child, problem_of, write_down
from arena.checks.doctor.cross_builds import families
from arena.checks.doctor.evidence import (
    CrossSeen,
    DeviceSeen,
    ItemOutcome,
    ItemResult,
    MemorySeen,
    ProbeSeen,
    VendorBuilds,
)
from arena.checks.doctor.items import ITEMS, DoctorItem, chosen
from arena.checks.doctor.quick import run_items, run_quick
from arena.errors import InfrastructureError, UsageError
from arena.judge.selection import select_cases
from arena.judge.workers.late_work import DELAYS, UNKNOWN, UNSEEN
from arena.platforms.base import Memory
from arena.platforms.rocm.hip_launch import LaunchSeen
from arena.results.environment import DeviceFacts
from arena.results.record import Mode
from arena.results.verdict import Status
from arena.task.corpus.task_folder import load_task
from tests.checks.doctor.fake_evidence import (
    CPU,
    GIB,
    H200,
    MI300X,
    MIB,
    RADEON,
    FakeEvidence,
    built,
    device,
    evaluation,
    good_machine,
    probe,
    refused,
    timing,
)
from tests.conftest import has_gpu
from tests.processes.test_python_child import COMMAND, dependencies, plant


@pytest.mark.parametrize("facts", [MI300X, RADEON, H200, CPU], ids=lambda facts: facts.arch)
def test_on_a_good_machine_every_item_that_applies_passes(facts: DeviceFacts) -> None:
    told: list[ItemResult] = []
    results = run_items(ITEMS, good_machine(facts), told.append)
    assert tuple(told) == results
    assert [(r.name, r.seen) for r in results if r.outcome is not ItemOutcome.PASS] == []
    assert [r.name for r in results] == [item.name for item in ITEMS if facts.platform in item.platforms]
    assert ("hip-python agrees" in {r.name for r in results}) == (facts.platform == "rocm")
    assert ("graph capture" in {r.name for r in results}) == (facts.platform != "cpu")


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        pytest.param(device(replace(MI300X, arch="gfx942:sramecc+")), "is no arch", id="arch-with-its-features"),
        pytest.param(device(multiprocessors=0), "no multiprocessors", id="no-multiprocessors"),
        pytest.param(device(replace(MI300X, wave_size=0)), "a wave of 0", id="wave-size"),
        pytest.param(device(memory=Memory(GIB, 24 * GIB)), "the runtime counts", id="another-devices-memory"),
        pytest.param(device(memory=Memory(0, 192 * GIB)), "are free", id="nothing-free"),
        pytest.param(device(replace(MI300X, last_level_cache_bytes=0)), "measured cold", id="no-cache"),
    ],
)
def test_device_facts_that_cannot_be(seen: DeviceSeen, said: str) -> None:
    answer = items.facts(seen)
    assert answer.outcome is ItemOutcome.FAIL and said in answer.seen


def test_device_facts_say_whether_peaks_are_known() -> None:
    assert "data sheet" in items.facts(device(MI300X)).seen
    assert "peaks unknown: no roofline" in items.facts(device(RADEON)).seen


def test_another_wave_size_on_the_device() -> None:
    found = replace(good_machine(RADEON).seen, device=device(replace(RADEON, wave_size=64)))
    assert items.wave_size(found).outcome is ItemOutcome.FAIL
    assert "the facts say 64, a kernel reads 32" in items.wave_size(found).seen


def test_a_host_that_does_not_see_what_was_written() -> None:
    seen = probe().exchange
    assert seen is not None
    answer = items.shared_buffer(probe(exchange=replace(seen, wrong_elements=4095)))
    assert answer.outcome is ItemOutcome.FAIL and "4095 of 4095" in answer.seen


@pytest.mark.parametrize(
    ("during", "after", "said"),
    [
        pytest.param(256 * MIB, 256 * MIB, "in use after both sides", id="not-given-back"),
        pytest.param(256 * MIB, 40 * MIB, "40 MiB of 256 MiB", id="partly-given-back"),
        pytest.param(0, 0, "cannot be followed", id="never-taken"),
    ],
)
def test_memory_that_stays(during: int, after: int, said: str) -> None:
    answer = items.memory_returned(probe(memory=MemorySeen(256 * MIB, GIB, GIB + during, GIB + after)))
    assert answer.outcome is ItemOutcome.FAIL and said in answer.seen


def test_late_work_that_runs_beside_the_judge_is_a_warning_with_what_to_do() -> None:
    for platform, told in (("rocm", True), ("cuda", False)):
        for found in (UNSEEN, UNKNOWN):
            answer = items.late_work(found, platform)
            assert answer.outcome is ItemOutcome.WARNING and found in answer.seen
            assert ("enforce_isolation" in answer.seen and "hws_max_conc_proc=0" in answer.seen) is told
    assert items.late_work(DELAYS, "rocm").outcome is ItemOutcome.PASS


@pytest.mark.parametrize("check", [items.wave_size, items.shared_buffer, items.memory_returned])
def test_a_probe_that_was_stopped_fails_what_it_did_not_reach(check: object) -> None:
    assert callable(check)
    stopped = ProbeSeen(device=device(), problem="hipIpcOpenMemHandle returned error 17")
    assert (check(stopped).outcome, check(stopped).seen) == (ItemOutcome.FAIL, "hipIpcOpenMemHandle returned error 17")


def test_hip_python_that_contradicts_pytorch_or_sees_nothing() -> None:
    contradicting = device(remarks=("hip-python sees gfx1100, PyTorch gfx942",))
    assert items.hip_python(contradicting).outcome is ItemOutcome.FAIL
    absent = device(hip_devices=0, asked_hip="hip-python cannot be imported")
    assert items.hip_python(absent).outcome is ItemOutcome.WARNING


@pytest.mark.parametrize(
    ("launched", "devices", "outcome", "said"),
    [
        (LaunchSeen("", 8, (64, *range(2, 4097))), 1, ItemOutcome.PASS, "4096 elements right, 8 blocks of 256 threads"),
        (LaunchSeen("", 8, (32, *range(2, 4097))), 1, ItemOutcome.FAIL, "1 of 4096 elements wrong, the first is (32,)"),
        (LaunchSeen("", 8, ()), 1, ItemOutcome.FAIL, "0 of 0 elements"),
        (LaunchSeen("hipErrorNoBinaryForGpu"), 1, ItemOutcome.FAIL, "launched nothing: hipErrorNoBinaryForGpu"),
        (LaunchSeen("hip-python cannot be imported"), 0, ItemOutcome.WARNING, "cannot be imported"),
    ],
)
def test_a_code_object(launched: LaunchSeen, devices: int, outcome: ItemOutcome, said: str) -> None:
    answer = items.code_object(probe(launched=launched, device=device(hip_devices=devices)))
    assert answer.outcome is outcome and said in answer.seen


@pytest.mark.parametrize(
    ("level", "outcome", "said"),
    [
        ("session+network", ItemOutcome.WARNING, "no mount"),
        ("session+mount", ItemOutcome.WARNING, "candidates can reach the network"),
        ("session+mount+seccomp+no-inet; x", ItemOutcome.WARNING, "the system call filter alone keeps candidates from"),
        ("session+shared-network+mount", ItemOutcome.PASS, "shared-network"),
        ("session", ItemOutcome.WARNING, "allow user namespaces"),
        ("", ItemOutcome.FAIL, "''"),
    ],
)
def test_walls_that_are_missing(level: str, outcome: ItemOutcome, said: str) -> None:
    answer = items.isolation(level)
    assert answer.outcome is outcome and said in answer.seen


def test_a_right_kernel_that_is_rejected() -> None:
    answer = items.passes(evaluation(Status.COMPILE_ERROR, detail="hipcc: no such option"))
    assert answer.outcome is ItemOutcome.FAIL and "hipcc: no such option" in answer.seen


@pytest.mark.parametrize("status", [Status.PASSED, Status.CRASH, Status.NONDETERMINISTIC])
def test_a_wrong_kernel_that_ends_otherwise(status: Status) -> None:
    assert items.ends_as(evaluation(status), Status.WRONG_RESULT).outcome is ItemOutcome.FAIL


@pytest.mark.parametrize(
    ("facts", "status"),
    [(CPU, Status.PASSED), (MI300X, Status.PASSED), (RADEON, Status.WRONG_RESULT), (H200, Status.WRONG_RESULT)],
    ids=lambda value: str(getattr(value, "arch", value)),
)
def test_a_kernel_for_32_lanes_that_ends_otherwise(facts: DeviceFacts, status: Status) -> None:
    assert items.with_32_lanes(evaluation(status, facts=facts)).outcome is ItemOutcome.FAIL


def test_modes_that_are_not_the_wanted_ones() -> None:
    streamed = evaluation(timings=(timing(0.1), timing(0.2, mode=Mode.STREAM)))
    assert items.captured(streamed).outcome is ItemOutcome.FAIL
    assert items.not_captured(streamed).outcome is ItemOutcome.FAIL
    assert items.captured(evaluation(timings=())).outcome is ItemOutcome.FAIL
    assert items.not_captured(evaluation(Status.LAUNCH_ERROR)).outcome is ItemOutcome.FAIL


@pytest.mark.parametrize(
    ("ms", "worker_ms", "outcome"),
    [
        (0.2, 0.2, ItemOutcome.PASS),
        (0.2, 0.212, ItemOutcome.PASS),
        (0.2, 0.23, ItemOutcome.FAIL),
        (0.2, 0.1, ItemOutcome.FAIL),
        (0.05, 0.5, ItemOutcome.SKIPPED),
    ],
)
def test_clocks_of_a_gpu_may_be_a_twentieth_apart(ms: float, worker_ms: float, outcome: ItemOutcome) -> None:
    found = evaluation(timings=(timing(0.01, worker_ms=9.0), timing(ms, worker_ms=worker_ms)))
    assert items.clocks([found], items.bounds(MI300X)).outcome is outcome


def test_clocks_and_speedups_need_a_timing() -> None:
    untimed = [evaluation(Status.WRONG_RESULT)]
    assert items.clocks(untimed, items.ON_GPU).outcome is ItemOutcome.FAIL
    assert items.against_itself(untimed, items.ON_GPU).outcome is ItemOutcome.FAIL


@pytest.mark.parametrize(
    ("facts", "speedup", "outcome"),
    [
        (MI300X, 1.019, ItemOutcome.PASS),
        (MI300X, 1.03, ItemOutcome.FAIL),
        (MI300X, 0.97, ItemOutcome.FAIL),
        (CPU, 1.25, ItemOutcome.PASS),
        (CPU, 1.4, ItemOutcome.FAIL),
    ],
)
def test_a_kernel_that_beats_itself(facts: DeviceFacts, speedup: float, outcome: ItemOutcome) -> None:
    found = evaluation(facts=facts, timings=(timing(0.01, speedup=3.0), timing(1.0, speedup=speedup)))
    assert items.against_itself([found], items.bounds(facts)).outcome is outcome


@pytest.mark.parametrize(("width", "outcome"), [(0.3, ItemOutcome.FAIL), (0.5, ItemOutcome.SKIPPED)])
def test_noise_decides_nothing_of_a_kernel_against_itself(width: float, outcome: ItemOutcome) -> None:
    found = evaluation(facts=CPU, timings=(timing(1.0, speedup=1.685, width=width),))
    assert items.against_itself([found], items.bounds(CPU)).outcome is outcome


def test_targets_that_do_not_build() -> None:
    trace = "Traceback (most recent call last):\n  File\nRuntimeError: PassManager::run failed"
    seen = CrossSeen((VendorBuilds("triton", "amd", builds=(built("gfx942"), refused("gfx1100", trace))),))
    answer = items.vendors(seen, "triton", "amd")
    assert (answer.outcome, answer.seen) == (ItemOutcome.FAIL, "gfx1100: RuntimeError: PassManager::run failed")


def test_what_this_machine_lacks_is_skipped_and_what_was_not_reached_fails() -> None:
    seen = CrossSeen((VendorBuilds("hip", "amd", missing="missing: clang++"),), problem="the child ended with code -11")
    assert items.vendors(seen, "hip", "amd").outcome is ItemOutcome.SKIPPED
    assert "clang++" in items.vendors(seen, "hip", "amd").seen
    assert items.vendors(seen, "hip", "nvidia").outcome is ItemOutcome.FAIL
    assert "code -11" in items.vendors(seen, "hip", "nvidia").seen


def test_one_target_of_each_family() -> None:
    amd = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1101", "gfx1200", "gfx1201")
    assert families(amd) == ("gfx942", "gfx1101", "gfx1201")
    assert families(("sm_80", "sm_89", "sm_90", "sm_100", "sm_120")) == ("sm_89", "sm_90", "sm_100", "sm_120")


def test_a_judge_that_dies_fails_the_items_that_need_it_and_no_others() -> None:
    evidence = good_machine(MI300X)
    del evidence.evaluations[c.WRONG]
    failed = [
        result for result in run_items(ITEMS, evidence, lambda result: None) if result.outcome is ItemOutcome.FAIL
    ]
    assert [(result.name, result.seen) for result in failed] == [("a wrong kernel", "the judge ended (exit code -11)")]


def test_without_a_device_the_first_item_says_so_and_the_rest_are_skipped() -> None:
    evidence = FakeEvidence(ProbeSeen(problem="no rocm device here, PyTorch offers cpu"))
    first, *rest = run_items(ITEMS, evidence, lambda result: None)
    assert (first.outcome, first.seen) == (ItemOutcome.FAIL, "no rocm device here, PyTorch offers cpu")
    assert {result.outcome for result in rest} == {ItemOutcome.SKIPPED}


def test_a_mistake_in_an_item_is_its_failure_alone() -> None:
    def mistaken(evidence: object) -> None:
        raise ZeroDivisionError

    items = (DoctorItem("mistaken", mistaken), ITEMS[0])  # type: ignore[arg-type]
    mistake, facts = run_items(items, good_machine(CPU), lambda result: None)
    assert mistake.outcome is ItemOutcome.FAIL and "the test itself failed" in mistake.seen
    assert facts.outcome is ItemOutcome.PASS


def test_items_are_chosen_by_a_part_of_their_names() -> None:
    assert chosen(()) == ITEMS
    assert [item.name for item in chosen(("clocks", "AMD"))] == [
        "two clocks",
        "HIP for AMD GPUs",
        "Triton for AMD GPUs",
    ]
    with pytest.raises(UsageError, match="no item with 'speed' in its name; there are: device facts, wave size"):
        chosen(("clocks", "speed"))


def test_what_a_child_wrote_survives_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = probe()
    write_down(tmp_path / "kept.json", seen)
    script = f"import os, shutil, sys; shutil.copy({str(tmp_path / 'kept.json')!r}, sys.argv[1]); os.abort()"
    (tmp_path / "dying.py").write_text(script, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found, how = ask_child("dying", (), ProbeSeen, 30.0)
    assert found == seen and how == "the child ended with code -6: "
    found, how = ask_child("this_module_is_absent", (), ProbeSeen, 30.0)
    assert found == ProbeSeen() and "this_module_is_absent" in how


def test_what_stops_a_child_is_noted() -> None:
    def mistaken() -> None:
        raise ZeroDivisionError("by none")

    def without_device() -> None:
        raise InfrastructureError("no rocm device here")

    assert problem_of(lambda: None) == ""
    assert problem_of(without_device) == "no rocm device here"
    assert "ZeroDivisionError: by none" in problem_of(mistaken)


def test_the_candidates_are_there_and_say_what_becomes_of_them() -> None:
    for candidate in CANDIDATES.values():
        assert candidate.file.is_file() and (candidate.task / "task.yaml").is_file()
    for name, word in ((c.WRONG, "wrong_result"), (c.PAST_THE_END, "out_of_bounds"), (c.WAITS, "stream")):
        assert word in CANDIDATES[name].file.read_text(encoding="utf-8").splitlines()[0]


@pytest.mark.parametrize("name", [c.START_HIP, c.WAITS])
def test_on_a_gpu_a_kernel_whose_timing_is_looked_at_has_timed_cases(name: str) -> None:
    candidate = CANDIDATES[name]
    task, options = load_task(candidate.task), candidate.options(emulated=False)
    assert [case.id for case in select_cases(task, task.seen, options) if case.timed]


def check(results: tuple[ItemResult, ...]) -> None:
    """Everything that was tried worked."""
    assert len(results) >= 14
    assert [(result.name, result.seen) for result in results if result.outcome is ItemOutcome.FAIL] == []
    never_skipped = [result for result in results if "GPUs" not in result.name]
    assert [result.name for result in never_skipped if result.outcome is ItemOutcome.SKIPPED] == []


@pytest.mark.slow
def test_here_on_the_cpu_platform(tmp_path: Path) -> None:
    """By the command, in a folder with a file for every module that there is, of which it imports none."""
    folder, marker = tmp_path / "folder", tmp_path / "imported"
    folder.mkdir()
    plant(folder, marker, {*sys.stdlib_module_names, *dependencies(), "sitecustomize", "usercustomize"})
    typed = [*COMMAND, "doctor", "--quick", "--platform", "cpu", "--json"]
    done = subprocess.run(typed, cwd=folder, capture_output=True, text=True, timeout=280, check=False)
    assert not marker.exists(), marker.read_text()
    assert done.returncode == 0 and "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    check(msgspec.json.decode(done.stdout, type=tuple[ItemResult, ...]))


@pytest.mark.gpu
def test_here_on_the_gpu() -> None:
    check(run_quick("auto", lambda result: None))


@pytest.mark.skipif(has_gpu(), reason="there is a device")
def test_here_a_device_that_is_absent_is_one_failed_item() -> None:
    first, *rest = run_quick("rocm", lambda result: None)
    assert first.outcome is ItemOutcome.FAIL and "no rocm device here, PyTorch offers cpu" in first.seen
    assert {result.outcome for result in rest} == {ItemOutcome.SKIPPED}
