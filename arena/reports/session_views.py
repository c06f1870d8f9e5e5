"""Sessions of coding agents as text and as data: what each used up, how it ended, what was flagged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from arena.reports import formats
from arena.reports.rows import TrialRow
from arena.reports.spending import best_so_far_mean, first_correct_s
from arena.reports.tables import markdown
from arena.results.session import Session, Tokens

HEADINGS = ("Agent", "Sessions", "Evaluations", "Minutes", "First correct", "Tokens", "Cost", "Endings", "Flags")


@dataclass(frozen=True)
class SessionsView:
    """All sessions of one agent: totals, and in brackets what that is for one session."""

    agent: str
    sessions: str
    evaluations: str
    minutes: str
    first_correct: str
    tokens: str
    cost: str
    endings: str
    flags: str

    @property
    def cells(self) -> tuple[str, ...]:
        """In the order of `HEADINGS`."""
        return (
            self.agent,
            self.sessions,
            self.evaluations,
            self.minutes,
            self.first_correct,
            self.tokens,
            self.cost,
            self.endings,
            self.flags,
        )


def sessions_views(rows: Sequence[TrialRow]) -> list[SessionsView]:
    """One line per agent that had sessions; empty where none had."""
    found: dict[str, list[Session]] = {}
    for row in rows:
        if row.session is not None:
            found.setdefault(row.label, []).append(row.session)
    return [_view(agent, sessions) for agent, sessions in found.items()]


def sessions_frame(rows: Sequence[TrialRow]) -> pd.DataFrame:
    """One row per session; times in seconds."""
    return pd.DataFrame([_cells(row, row.session) for row in rows if row.session is not None])


def sessions_markdown(rows: Sequence[TrialRow]) -> list[str]:
    """The table of sessions as lines of markdown; none where there were no sessions."""
    found = sessions_views(rows)
    if not found:
        return []
    frame = pd.DataFrame([view.cells for view in found], columns=list(HEADINGS))
    return ["", "## Sessions", "", markdown(frame)]


def session_facts(session: Session) -> list[tuple[str, str]]:
    """One session as name and value, for the head of a page or a terminal."""
    used = f"{len(session.evaluations)}"
    if session.refused:
        used += f", {session.refused} more refused"
    best = session.best
    program = f"{session.agent} {session.version}".strip()
    return [
        ("program", program),
        ("model", session.model or "not stated"),
        ("ending", spelled(session.ending) + (f": {session.detail}" if session.detail else "")),
        ("time", f"{formats.clock(session.active_s)} at work, {formats.clock(session.paused_s)} paused for the judge"),
        ("evaluations", used + (f"; best {best.speedup:.2f}× (no. {best.number})" if best and best.speedup else "")),
        ("tokens", tokens_line(session.tokens)),
        ("cost", formats.dollars(session.cost_usd) if session.cost_usd else "not stated"),
        ("isolation", session.isolation),
    ]


def tokens_line(tokens: Tokens) -> str:
    """Tokens in words, or that none were reported."""
    if not tokens.total:
        return "not stated"
    cached = f" ({formats.count(tokens.cached)} from the provider's cache)" if tokens.cached else ""
    return f"{formats.count(tokens.input)} in{cached}, {formats.count(tokens.output)} out"


def spelled(word: str) -> str:
    """A member of an enumeration in words."""
    return str(word).replace("_", " ")


def _view(agent: str, sessions: Sequence[Session]) -> SessionsView:
    tokens = sum((one.tokens for one in sessions), Tokens())
    cost = sum(one.cost_usd for one in sessions)
    endings = Counter(spelled(one.ending) for one in sessions)
    flagged = sum(bool(one.flags) for one in sessions)
    flags = sum(len(one.flags) for one in sessions)
    evaluations = sum(len(one.evaluations) for one in sessions)
    minutes = sum(one.active_s for one in sessions) / 60
    return SessionsView(
        agent,
        str(len(sessions)),
        _each(f"{evaluations}", f"{evaluations / len(sessions):.1f}", sessions),
        _each(f"{minutes:.1f}", f"{minutes / len(sessions):.1f}", sessions),
        _first_correct(sessions),
        _used(
            formats.count(tokens.total),
            formats.count(tokens.total // len(sessions)),
            [s.tokens.total for s in sessions],
        ),
        _used(formats.dollars(cost), formats.dollars(cost / len(sessions)), [s.cost_usd for s in sessions]),
        ", ".join(f"{name} {number}" for name, number in endings.most_common()),
        f"{flags} in {flagged} of {len(sessions)}" if flags else "none",
    )


def _each(total: str, mean: str, sessions: Sequence[Session]) -> str:
    return total if len(sessions) == 1 else f"{total} [{mean} each]"


def _used(total: str, mean: str, each: Sequence[float]) -> str:
    """A total, its mean, and in how many sessions it is known where that is not in all."""
    known = sum(map(bool, each))
    if known in (0, len(each)):
        return (f"{total} [{mean} each]" if len(each) > 1 else total) if known else formats.NONE
    return f"{total} [known in {known} of {len(each)}]"


def _first_correct(sessions: Sequence[Session]) -> str:
    """The first and the last of the times to a first correct kernel, and how many sessions never had one."""
    times = [at_s for at_s in map(first_correct_s, sessions) if at_s is not None]
    never = len(sessions) - len(times)
    if not times:
        return f"never in {never}"
    span = formats.clock(min(times)) + (f" to {formats.clock(max(times))}" if len(times) > 1 else "")
    return f"{span} [never in {never} of {len(sessions)}]" if never else span


def _cells(row: TrialRow, session: Session) -> dict[str, str | int | float | None]:
    best = session.best
    return {
        "run": row.run,
        "agent": row.agent,
        "label": row.label,
        "task": row.task,
        "attempt": row.attempt,
        "program": session.agent,
        "version": session.version,
        "model": session.model,
        "ending": str(session.ending),
        "detail": session.detail,
        "active_s": session.active_s,
        "paused_s": session.paused_s,
        "evaluations": len(session.evaluations),
        "refused": session.refused,
        "best_seen_speedup": best.speedup if best else None,
        "first_correct_s": first_correct_s(session),
        "best_so_far": best_so_far_mean(session),
        "tokens_input": session.tokens.input,
        "tokens_output": session.tokens.output,
        "tokens_cached": session.tokens.cached,
        "cost_usd": session.cost_usd,
        "events": session.events,
        "flags": len(session.flags),
        "reaches_for": _joined(flag.reaches_for for flag in session.flags),
        "isolation": session.isolation,
    }


def _joined(words: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(words))
