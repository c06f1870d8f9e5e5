"""Credentials taken out of text: as they are, and in the encodings in which they are commonly printed."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from urllib.parse import quote, quote_plus

from arena.results.session import Event

SHORTEST = 8
"""Characters below which a value is left alone: it would be found in ordinary text."""

_BREAK = r"(?:\\+[rn]|[\r\n])"
"""A line break, also as JSON writes it, also in JSON within JSON: `base64` wraps at 76 characters."""
_BETWEEN_BYTES = r"(?:%|0x|\\+x|[\s:,-])"
"""What stands between the bytes of a hexadecimal dump: `73:6b`, `0x73, 0x6b`, `\\x73\\x6b`, `%73%6b`."""


class Redactor:
    """Replaces every occurrence of a secret by its name in brackets: `[ANTHROPIC_API_KEY]`.

    Found are the value itself, its base64 at any alignment (also wrapped), hexadecimal, URL-quoted, JSON-escaped and
    reversed forms. `too_short` names the secrets whose values are too short to be looked for.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        values = {name: value.strip() for name, value in secrets.items()}
        self.too_short = tuple(name for name, value in values.items() if 0 < len(value) < SHORTEST)
        known = {name: value for name, value in values.items() if len(value) >= SHORTEST}
        forms = {form: name for name, value in known.items() for form in _forms(value)}
        self._forms = sorted(forms.items(), key=lambda item: len(item[0]), reverse=True)
        self._wrapped = [
            (core, re.compile(f"{_BREAK}*".join(map(re.escape, core))), name)
            for name, value in known.items()
            for core in _base64_cores(value.encode())
        ]
        self._hexadecimal = [
            (re.compile(f"{_BETWEEN_BYTES}*".join(_pairs(value.encode())), re.IGNORECASE), name)
            for name, value in known.items()
        ]

    def clean(self, text: str) -> str:
        """The text without the secrets."""
        for form, name in self._forms:
            if form in text:
                text = text.replace(form, f"[{name}]")
        unwrapped = re.sub(_BREAK, "", text) if self._wrapped else ""
        for core, pattern, name in self._wrapped:
            if core in text or core in unwrapped:
                text = pattern.sub(_mark(name), text)
        for pattern, name in self._hexadecimal:
            text = pattern.sub(_mark(name), text)
        return text

    def clean_bytes(self, data: bytes) -> bytes:
        """The bytes without the secrets; every other byte stays as it was, also where it is not UTF-8."""
        return self.clean(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def clean_event(self, event: Event) -> Event:
        """The event without the secrets: a parser may have undone an escape that hid one from `clean`."""
        return replace(
            event,
            text=self.clean(event.text),
            diff=self.clean(event.diff),
            tool=self.clean(event.tool),
            call=self.clean(event.call),
            parent=self.clean(event.parent),
        )


def _forms(value: str) -> Iterator[str]:
    """The value and what becomes of it under encodings that keep its characters in order, or turn them round."""
    for plain in (value, value[::-1]):
        yield plain
        yield quote(plain)
        yield quote(plain, safe="")
        yield quote_plus(plain)
        for ascii_only in (True, False):
            once = json.dumps(plain, ensure_ascii=ascii_only)[1:-1]
            yield once
            yield once.replace("/", "\\/")
            yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]


def _base64_cores(data: bytes) -> Iterator[str]:
    """The characters of base64 that depend on `data` alone, for each of the three places it may have in a group."""
    for before in range(3):
        first, last = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        padded = bytes(before) + data + bytes(2)
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(padded).decode("ascii")[first:last]


def _pairs(data: bytes) -> list[str]:
    return [f"{byte:02x}" for byte in data]


def _mark(name: str) -> str:
    return f"[{name}]".replace("\\", "\\\\")
