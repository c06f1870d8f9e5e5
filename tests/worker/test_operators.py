"""In a Triton candidate's process PyTorch allocates, fills, views and copies, and computes nothing."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HARMLESS = {
    "empty": "torch.empty(3, 2)",
    "zeros": "torch.zeros_like(a)",
    "full": "torch.full((3,), 2.0)",
    "ones": "torch.ones(2, dtype=torch.int32)",
    "tensor": "torch.tensor([1, 2])",
    "arange": "torch.arange(7)",
    "fill": "a.clone().fill_(3.0)",
    "zero a slice": "torch.ones(4, 4)[:, 2:].zero_()",
    "view": "a.view(2, 8).t().reshape(-1)",
    "view as another dtype": "a.view(torch.int32)",
    "split": "a.split(1)[0].squeeze(0).unsqueeze(-1)",
    "expand and copy": "a[0].expand(5, 4).contiguous()",
    "another dtype": "a.to(torch.bfloat16)",
    "one number": "a[0, 0].item()",
    "numbers": "a.tolist()",
    "copy elsewhere": "torch.empty(4, 4).copy_(a)",
    "fill an argument": "argument.zero_()",
}
METADATA = {
    "longest sequence": "lengths.max().item() == 5",
    "counts": "(offsets[1:] - offsets[:-1]).tolist() == [2, 3, 0]",
    "blocks before": "torch.cumsum((offsets[1:] - offsets[:-1] + 1) // 2, 0).tolist() == [1, 3, 3]",
    "whose block": "torch.repeat_interleave(torch.arange(3), offsets.diff()).tolist() == [0, 0, 1, 1, 1]",
    "search": "torch.searchsorted(offsets, torch.arange(3), right=True).tolist() == [1, 1, 2]",
    "sorted": "lengths.sort(descending=True)[1].tolist() == [1, 2, 0]",
    "indexed": "lengths[torch.tensor([2, 0])].tolist() == [4, 3]",
    "cat": "torch.cat([lengths.new_zeros(1), lengths.cumsum(0).to(torch.int32)]).tolist() == [0, 3, 8, 12]",
    "in place": "lengths.clone().add_(1).tolist() == [4, 6, 5]",
    "where": "torch.where(lengths > 3, lengths, 0).tolist() == [0, 5, 4]",
    "one number or another": "bool((lengths > 3).any())",
}
"""what holds in the worker of a task whose outputs are floating point"""
NO_METADATA = {
    "floating point": "a.sum()",
    "a float beside": "lengths * 0.5",
    "a sum of another dtype": "lengths.sum(dtype=torch.float32)",
    "a quotient": "lengths / 2",
    "many integers": "torch.arange(4097).sum()",
    "many made of few": "torch.repeat_interleave(lengths, torch.full((3,), 4096))",
    "codes": "torch.ones(4, dtype=torch.uint8) + 1",
    "a result piece by piece": "[(torch.ones(4096, dtype=torch.int32) + 1) for _ in range(17)]",
    "not elementwise": "lengths.to(torch.float32) @ a[:3]",
}
REFUSED = {
    "matrix product": "a @ a",
    "sum": "a.sum()",
    "softmax": "torch.softmax(a, -1)",
    "attention": "torch.nn.functional.scaled_dot_product_attention(a[None], a[None], a[None])",
    "linear": "torch.nn.functional.linear(a, a)",
    "einsum": "torch.einsum('ij,jk->ik', a, a)",
    "arithmetic": "a + 1",
    "in place": "a.mul_(2.0)",
    "several at once": "torch._foreach_add([a], 1.0)",
    "sort": "a.sort()",
    "gather": "a[torch.tensor([0, 1])]",
    "cat": "torch.cat([a, a])",
    "random": "torch.randn(4)",
    "comparison": "torch.equal(a, a)",
    "convolution": "torch.conv1d(a[None], a[None])",
    "sparse": "torch.sparse.mm(torch.sparse_coo_tensor(torch.tensor([[0], [0]]), a[0, :1], (4, 4)), a)",
    "csr": "torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), a[0, :1], (1, 4)) @ a",
    "quantized": "torch.quantize_per_tensor(a, 0.1, 0, torch.qint8)",
    "nested": "torch.nested.nested_tensor([a[0], a[1]]) * 2.0",
    "mkldnn": "a.to_mkldnn()",
    "put back by the garbage collector": "put_back() or a @ a",
    "another thread": "elsewhere(lambda: a * 2.0)",
    "copy into an argument": "argument.copy_(a)",
    "assignment to an argument": "argument[1:].__setitem__(slice(0, 1), 3.0 * 1) or argument.__setitem__(0, a[0])",
    "a copy kept inside": "argument[2:3].copy_(a[:1], non_blocking=True)",
}
COMPILED = {"compiled": "torch.compile(lambda x: x * 2.0)(a)"}
"""apart from the others: importing PyTorch's compiler takes seconds"""
SCRIPT = """
import json, sys, threading
import torch
from arena.worker.operators import Operators, RuleViolation

a, argument = torch.ones(4, 4), torch.zeros(4, 4)
lengths, offsets = torch.tensor([3, 5, 4], dtype=torch.int32), torch.tensor([0, 2, 5, 5])
kept = Operators("cpu", metadata=sys.argv[2] == "metadata")
kept.protect(argument.data_ptr(), argument.nbytes)

def elsewhere(work):
    found = []
    def run():
        try:
            found.append(work())
        except BaseException as problem:
            found.append(problem)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(found[0], BaseException):
        raise found[0]

def put_back():
    import gc
    for found in gc.get_objects():
        if type(found) is torch.library.Library or type(found).__name__ == "_DispatchModule":
            found.m = None
            found._destroy()
    del globals()["kept"]
    gc.collect()

outcomes = {}
for name, text in json.loads(sys.argv[1]).items():
    try:
        outcomes[name] = "wrong" if eval(text) is False else ""
    except RuleViolation as problem:
        outcomes[name] = str(problem)
    except Exception as problem:
        outcomes[name] = f"another error: {problem!r}"
print(json.dumps(outcomes))
"""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    return tried(HARMLESS | REFUSED)


def tried(expressions: dict[str, str], metadata: str = "") -> dict[str, str]:
    """What each expression got in a process of its own, which is of no use afterwards."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(expressions), metadata],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Overriding" not in done.stderr  # PyTorch's warning would stand in every candidate's log
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", HARMLESS)
def test_what_computes_nothing_works(outcomes: dict[str, str], name: str) -> None:
    assert outcomes[name] == ""


@pytest.mark.parametrize("name", REFUSED)
def test_what_computes_is_refused_and_named(outcomes: dict[str, str], name: str) -> None:
    assert_refused(outcomes[name])


def test_few_integers_may_be_computed_with_where_none_is_a_result() -> None:
    found = tried({**METADATA, **NO_METADATA}, "metadata")
    assert {name: found[name] for name in METADATA} == dict.fromkeys(METADATA, "")
    assert [name for name in NO_METADATA if "PyTorch" not in found[name]] == []
    assert [name for name, outcome in tried(METADATA).items() if "PyTorch" not in outcome] == []


@pytest.mark.slow
def test_what_pytorch_compiles_is_refused() -> None:
    assert_refused(tried(COMPILED)["compiled"])


def assert_refused(outcome: str) -> None:
    assert "PyTorch" in outcome and "Triton kernels" in outcome
