"""Chunks, steps and packed rows, and that the references of the Mamba-2 tasks chain into the recurrence itself."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from arena.semantics.state_space import chunked, draw_seq_idx, draw_steps
from arena.task.corpus.task_folder import TASKS
from arena.task.numerics.reference import FUNCTION, call_by_name, load_module

Tensors = dict[str, torch.Tensor]


def test_chunks_hold_the_tokens_in_order_and_zeros_past_the_end() -> None:
    values = torch.arange(1, 8).view(1, 7, 1)
    assert chunked(values, 3).flatten(-2).tolist() == [[[1, 2, 3], [4, 5, 6], [7, 0, 0]]]


def test_decays_are_sums_of_steps_within_each_chunk_and_stay_past_the_end() -> None:
    steps = draw_steps((4,), 6, 37, 16, torch.Generator().manual_seed(1))
    assert steps.dt.shape == steps.dA_cumsum.shape == (4, 6, 3, 16)
    rates = steps.dA_cumsum[..., 0] / steps.dt[..., 0]
    assert torch.allclose(rates, rates[..., :1].expand_as(rates), rtol=1e-4)
    assert torch.allclose(steps.dA_cumsum[..., 15], rates * steps.dt.sum(-1), rtol=1e-4)
    assert not steps.dt[..., 2, 5:].any() and bool((steps.dt[..., 2, :5] > 0).all())
    assert torch.equal(steps.dA_cumsum[..., 2, 4:], steps.dA_cumsum[..., 2, 4:5].expand(4, 6, 12))


def test_no_head_keeps_or_forgets_everything_over_a_chunk() -> None:
    steps = draw_steps((8,), 50, 256, 64, torch.Generator().manual_seed(2))
    kept = steps.dA_cumsum[..., -1].exp()
    assert math.exp(-4) < float(kept.min()) < 0.2 and 0.4 < float(kept.max()) < 0.8


@pytest.mark.parametrize(("seq_len", "num_seqs"), [(1, 1), (2, 2), (50, 1), (50, 7), (50, 50)])
def test_packed_rows_count_their_sequences_up_from_0(seq_len: int, num_seqs: int) -> None:
    ids = draw_seq_idx((20,), seq_len, num_seqs, torch.Generator().manual_seed(3))
    assert ids.shape == (20, seq_len) and ids.dtype == torch.int32 and not ids[:, 0].any()
    assert set(ids.diff().flatten().tolist()) <= {0, 1}
    assert ids[:, -1].tolist() == [num_seqs - 1] * 20


def _run(task: str, **values: Any) -> Any:
    """The reference of a task of the suite, in float64."""
    module = load_module(TASKS / "triton2triton" / "state_space" / task / "reference.py", f"chain_{task}")
    return call_by_name(getattr(module, FUNCTION), {}, values)


def _layer(rows: int, tokens: int) -> Tensors:
    """Inputs of a Mamba-2 layer with 4 heads of 3 values in 2 groups, and states of 5 for each value."""
    generator = torch.Generator().manual_seed(5)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    layer = {"x": normal(rows, tokens, 4, 3), "z": normal(rows, tokens, 4, 3), "dt": normal(rows, tokens, 4)}
    layer |= {"B": normal(rows, tokens, 2, 5), "C": normal(rows, tokens, 2, 5)}
    layer |= {"A": -normal(4).abs(), "D": normal(4), "dt_bias": normal(4), "state": normal(rows, 4, 3, 5)}
    return layer


def _prefill(layer: Tensors, chunk_size: int, seq_idx: torch.Tensor | None) -> Tensors:
    """The chain of the ssd tasks: what each of them gives, and `out`."""
    known: dict[str, Any] = {**layer, "seq_idx": seq_idx, "chunk_size": chunk_size, "seq_len": layer["x"].shape[1]}
    clamp = {"dt_softplus": True, "dt_min": 0.0, "dt_max": 1e9}
    known["dt"], known["dA_cumsum"] = _run("ssd_chunk_cumsum", **known, **clamp)
    known["CB"] = _run("ssd_bmm", a=layer["C"], b=layer["B"], causal=True, chunk_size=chunk_size)
    known["states"] = _run("ssd_chunk_state", **known)
    passed = _run("ssd_state_passing", **known, initial_states=layer["state"])
    known["prev_states"], known["final_states"] = passed
    known["out"] = _run("ssd_chunk_scan", **known)
    return {name: value for name, value in known.items() if isinstance(value, torch.Tensor)}


def _decode(layer: Tensors, row: int, begin: int, end: int, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The same tokens one after the other: outputs (tokens, 4, 3) and the last state (4, 3, 5)."""
    spread = {name: layer[name][:, None].expand(4, 3) for name in ("dt_bias", "D")}
    spread["A"] = layer["A"][:, None, None].expand(4, 3, 5)
    held, slots, outs = state[None], torch.zeros(1, dtype=torch.int32), []
    for t in range(begin, end):
        token = {name: layer[name][row, t][None] for name in ("x", "z", "B", "C")}
        token["dt"] = layer["dt"][row, t][None, :, None].expand(1, 4, 3)
        step = {"idx_mapping": slots, "state": held, "dt_softplus": True}
        out, held = _run("selective_scan_update", **token, **spread, **step)
        outs.append(out[0])
    return torch.stack(outs), held[0].clone()


@pytest.mark.parametrize(("tokens", "chunk_size"), [(23, 6), (12, 4), (5, 8), (4, 1)])
def test_prefill_by_chunks_is_decode_token_by_token(tokens: int, chunk_size: int) -> None:
    layer = _layer(2, tokens)
    given = _prefill(layer, chunk_size, None)
    for row in range(2):
        out, state = _decode(layer, row, 0, tokens, layer["state"][row].clone())
        assert torch.allclose(given["out"][row], out) and torch.allclose(given["final_states"][row], state)


def test_packed_sequences_do_not_see_each_other() -> None:
    cu_seqlens = torch.tensor([0, 4, 4, 13, 18, 19, 23], dtype=torch.int32)
    layer = _layer(1, 23)
    layer["state"].zero_()
    seq_idx = torch.repeat_interleave(torch.arange(6), cu_seqlens.diff().long()).int()[None]
    given = _prefill(layer, 6, seq_idx)
    flat = {name: given[name][0] for name in ("x", "dt", "dA_cumsum", "B", "prev_states")}
    empty = torch.zeros(6, 4, 3, 5, dtype=torch.float64)
    states = _run("ssd_chunk_state_varlen", **flat, initial_states=empty, cu_seqlens=cu_seqlens, chunk_size=6)
    for index, (begin, end) in enumerate(zip(cu_seqlens[:-1].tolist(), cu_seqlens[1:].tolist(), strict=True)):
        if begin < end:
            out, state = _decode(layer, 0, begin, end, empty[0].clone())
            assert torch.allclose(given["out"][0, begin:end], out) and torch.allclose(states[index], state)
    assert not states[1].any()


def test_a_convolution_of_a_prompt_is_its_steps_one_by_one() -> None:
    generator = torch.Generator().manual_seed(6)
    x, weight = torch.randn(7, 3, generator=generator), torch.randn(3, 4, generator=generator)
    bias, conv_state = torch.randn(3, generator=generator), torch.randn(2, 3, 3, generator=generator)
    cu_seqlens, slots = torch.tensor([0, 2, 7], dtype=torch.int32), torch.tensor([1, 0], dtype=torch.int32)
    layer = {"weight": weight, "bias": bias, "silu": True, "idx_mapping": slots}
    begun = {"has_initial_state": torch.tensor([True, False]), "conv_state": conv_state.clone()}
    y, last = _run("causal_conv1d_fwd", x=x, cu_seqlens=cu_seqlens, **layer, **begun)
    held = conv_state.clone()
    held[0] = 0
    for t in range(5):
        active = torch.tensor([1 if t < 2 else -1, 0], dtype=torch.int32)
        tokens = torch.stack([x[min(t, 1)], x[2 + t]])
        out, held = _run("causal_conv1d_update", x=tokens, **{**layer, "idx_mapping": active}, conv_state=held)
        assert torch.allclose(out[1], y[2 + t]) and (t > 1 or torch.allclose(out[0], y[t]))
    assert torch.equal(held, last)
