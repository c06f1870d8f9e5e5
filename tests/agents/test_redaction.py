"""Secrets in every encoding in which they are commonly printed are replaced by their names; nothing else changes."""

from __future__ import annotations

import base64
import json
import string
import textwrap
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.agents.redaction import Redactor
from arena.results.session import Event, EventKind

KEY = "sk-ant-test-0123456789abcdefXYZ/+=="
MARK = "[API_KEY]"
keys = (
    st.text(string.ascii_letters + string.digits + '-_/+=.&%"\\é', min_size=12, max_size=60)
    .map(str.strip)
    .filter(lambda key: len(key) >= 12)
)
around = st.binary(max_size=9)


def redact(text: str, key: str = KEY) -> str:
    return Redactor({"API_KEY": key}).clean(text)


@given(keys, st.text(string.ascii_letters + " \n", max_size=9))
def test_the_value_itself(key: str, other: str) -> None:
    assert redact(f"{other} {key} {other}", key) == f"{other} {MARK} {other}"


@given(keys, around, around, st.sampled_from([base64.b64encode, base64.urlsafe_b64encode]))
@settings(max_examples=200)
def test_base64_at_every_alignment(key: str, before: bytes, after: bytes, encode: object) -> None:
    assert callable(encode)
    text = encode(before + key.encode() + after).decode()
    cleaned = redact(f"<{text}>", key)
    assert MARK in cleaned
    left = cleaned.replace(MARK, "").strip("<>")
    outside = len(text) - len(key.encode()) * 8 // 6
    assert len(left) <= outside + 2, "all but the characters shared with a neighbour are gone"


@pytest.mark.parametrize("width", [4, 19, 76])
def test_wrapped_base64(width: int) -> None:
    text = base64.b64encode(b"OTHER=1\nAPI_KEY=" + KEY.encode() + b"\nMORE=2").decode()
    wrapped = "\n".join(textwrap.wrap(text, width))
    for shown in (wrapped, wrapped.replace("\n", "\r\n"), json.dumps(wrapped), json.dumps(json.dumps(wrapped))):
        cleaned = redact(shown)
        assert MARK in cleaned
        assert base64.b64encode(KEY.encode()).decode()[8:24] not in cleaned.replace("\n", "")
    assert isinstance(json.loads(redact(json.dumps(wrapped))), str), "a line of JSON stays one"


@given(keys)
def test_hexadecimal_in_both_cases_and_with_separators(key: str) -> None:
    data = key.encode()
    for text in (data.hex(), data.hex().upper(), data.hex(":"), data.hex(" "), "%" + data.hex("%").upper()):
        cleaned = redact(f"= {text} =", key)
        assert MARK in cleaned
        assert data.hex() not in cleaned.lower()
        assert len(cleaned) <= len(MARK) + 5
    escaped = "".join(f"\\x{byte:02x}" for byte in data)
    assert redact(escaped, key) == f"\\x{MARK}"


@given(keys)
def test_quoted_escaped_and_reversed(key: str) -> None:
    once = json.dumps(key)[1:-1]
    forms = [quote(key), quote(key, safe=""), quote_plus(key), once, json.dumps(once)[1:-1], key[::-1]]
    forms += [json.dumps(key, ensure_ascii=False)[1:-1], once.replace("/", "\\/")]
    for form in forms:
        assert redact(f"a{form}b", key) == f"a{MARK}b"


@given(st.text(max_size=300), st.binary(max_size=300))
def test_everything_else_stays(text: str, data: bytes) -> None:
    redactor = Redactor({"API_KEY": KEY})
    assert redactor.clean(text) == text
    assert redactor.clean_bytes(data) == data
    assert redactor.clean_bytes(b"\xff" + KEY.encode() + b"\xfe") == b"\xff" + MARK.encode() + b"\xfe"


def test_short_values_are_named_and_left_alone() -> None:
    redactor = Redactor({"SHORT": "abc1234", "EMPTY": "", "LONG": "abcd1234"})
    assert redactor.too_short == ("SHORT",)
    assert redactor.clean("abc1234 abcd1234") == "abc1234 [LONG]"


def test_a_value_inside_another_is_found_after_the_longer_one() -> None:
    redactor = Redactor({"PART": KEY[:16], "WHOLE": KEY})
    assert redactor.clean(f"{KEY} {KEY[:16]}") == "[WHOLE] [PART]"


def test_surrounding_blanks_of_a_variable_do_not_hide_it() -> None:
    assert Redactor({"API_KEY": f" {KEY}\n"}).clean(KEY) == MARK


def test_an_event_is_cleaned_in_every_text() -> None:
    event = Event(EventKind.TOOL_CALL, KEY, 1.0, KEY, KEY, KEY, f"+{KEY}")
    cleaned = Redactor({"API_KEY": KEY}).clean_event(event)
    assert cleaned == Event(EventKind.TOOL_CALL, MARK, 1.0, MARK, MARK, MARK, f"+{MARK}")


def test_large_texts_are_cleaned_in_reasonable_time() -> None:
    redactor = Redactor({f"K{place}": f"sk-test-{place:030}" for place in range(4)})
    text = "73 6b 2d c2stYW5 \\n" * 50_000
    assert redactor.clean(text) == text
