"""What tells who an owner is and where does not get into the file that they send."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from arena.checks.doctor.report import PrivateData
from arena.package import own_folders

TOKEN = "hf_0123456789abcdef"
PRIVATE = PrivateData(
    {"USER": "alice", "HF_TOKEN": TOKEN, "SUDO_USER": "al", "LANG": "en_GB.UTF-8"}, "gpu7.example.org", Path("/data/al")
)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("hipcc at /data/al/rocm/bin/hipcc", "hipcc at ~/rocm/bin/hipcc"),
        ("/data/alpine is another folder", "/data/alpine is another folder"),
        ("/home/bob/x.py:3, /home/bob", "/home/<user>/x.py:3, /home/<user>"),
        ("owned by alice on gpu7", "owned by <user> on <host>"),
        ("gpu7.example.org: alice's", "<host>: <user>'s"),
        ("malice and gpu70 are other words; al is too short to tell", None),
        (f"Authorization: Bearer {TOKEN}", "Authorization: Bearer [HF_TOKEN]"),
        ("http://me:pass@proxy:8080/", "http://<credentials>@proxy:8080/"),
        (f"{own_folders()[-1]}/arena/judge/x.py", "<arena>/arena/judge/x.py"),
        ("run as root in C.UTF-8", None),
    ],
)
def test_a_private_datum_is_replaced_and_nothing_else(text: str, clean: str | None) -> None:
    assert PRIVATE.clean(text) == (text if clean is None else clean)


def test_a_secret_is_found_in_other_encodings() -> None:
    assert "[HF_TOKEN]" in PRIVATE.clean(base64.b64encode(f"user:{TOKEN}".encode()).decode())


def test_this_process_has_private_data_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_TOKEN", "a-token-of-this-test")
    monkeypatch.setenv("HOME", "/somewhere/else")
    said = PrivateData().clean("a-token-of-this-test in /somewhere/else/x")
    assert said == "[ARENA_TOKEN] in ~/x"
