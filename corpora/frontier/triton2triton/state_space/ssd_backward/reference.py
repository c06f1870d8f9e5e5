"""Backward pass of the state space duality scan (Mamba-2, Dao and Gu, 2024) in chunks of 64 tokens."""

import torch

_CHUNK = 64


def reference(
    x: torch.Tensor, dt: torch.Tensor, A: torch.Tensor, B: torch.Tensor, C: torch.Tensor, dy: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """x, dy: (batch, seq_len, num_heads, head_dim); dt: (batch, seq_len, num_heads); B: (…, num_groups, state_dim)."""
    rows = [_row(A, *parts) for parts in zip(x, dt, B, C, dy, strict=True)]
    dx, ddt, dA, dB, dC = (torch.stack(parts) for parts in zip(*rows, strict=True))
    return dx, ddt, dA.sum(dim=0), dB, dC


def _row(
    A: torch.Tensor, x: torch.Tensor, dt: torch.Tensor, B: torch.Tensor, C: torch.Tensor, dy: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Gradients of one row: (seq_len, …) each, dA (num_heads,)."""
    heads, groups = x.shape[1], B.shape[1]
    begins = range(0, len(x), _CHUNK)

    def chunk(values: torch.Tensor, begin: int) -> torch.Tensor:
        part = values[begin : begin + _CHUNK].transpose(0, 1)
        return part if len(part) == heads else part.repeat_interleave(heads // groups, dim=0)

    def by_group(values: torch.Tensor) -> torch.Tensor:
        return values.unflatten(0, (groups, -1)).sum(dim=1).transpose(0, 1)

    def sums_of(begin: int) -> torch.Tensor:
        return (chunk(dt, begin) * A[:, None]).cumsum(dim=1).unsqueeze(2)

    state = x.new_zeros(heads, x.shape[2], B.shape[2])
    states = []
    for begin in begins:
        states.append(state)
        sums = sums_of(begin)
        added = (sums[:, -1:] - sums).exp() * chunk(dt, begin).unsqueeze(2) * chunk(x, begin)
        state = sums[:, -1:].exp() * state + added.mT @ chunk(B, begin)
    after = torch.zeros_like(state)
    results = []
    dA = torch.zeros_like(A)
    for begin, before in zip(reversed(begins), reversed(states), strict=True):
        values, step, b, c, grads = (chunk(part, begin) for part in (x, dt, B, C, dy))
        sums = sums_of(begin)
        step = step.unsqueeze(2)
        last, since = sums[:, -1:], sums.exp()
        left = (last - sums).exp()
        until = torch.ones(b.shape[1], b.shape[1], dtype=torch.bool, device=x.device).tril()
        between = (sums - sums.mT).where(until, 0.0).exp().where(until, 0.0)
        weights = (c @ b.mT) * between
        pairs = grads @ values.mT
        faded = pairs * between * step.mT
        from_after = b @ after.mT
        to_before = grads @ before
        dv = weights.mT @ grads + left * from_after
        dc = faded @ b + since * to_before
        db = faded.mT @ c + step * left * (values @ after)
        # The log-decay of token t scales all that passes from a token before t to t or one behind it.
        passed = (weights * pairs * step.mT).flip(1).cumsum(dim=1).flip(1).tril(-1).sum(dim=2)
        read = (since * c * to_before).sum(dim=2).flip(1).cumsum(dim=1).flip(1)
        written = (step * left * values * from_after).sum(dim=2)
        written = written.cumsum(dim=1) - written
        through = (last.exp() * after * before).sum(dim=(1, 2))
        decay = passed + read + written + through[:, None]
        dA = dA + (step[:, :, 0] * decay).sum(dim=1)
        ddt = (values * dv).sum(dim=2) + A[:, None] * decay
        results.append(((step * dv).transpose(0, 1), ddt.T, by_group(db), by_group(dc)))
        after = last.exp() * after + (since * grads).mT @ c
    dx, ddt, dB, dC = (torch.cat(parts[::-1]) for parts in zip(*results, strict=True))
    return dx, ddt, dA, dB, dC
