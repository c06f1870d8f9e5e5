"""The key of the stand-in, and nothing else of the caller's environment."""

from __future__ import annotations

import pytest

from tests.agents.chat.trials import KEY


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the variable that the definitions of these tests name."""
    monkeypatch.setenv("TEST_MODEL_KEY", KEY)
    for name in ("http_proxy", "https_proxy", "all_proxy", "OPENAI_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
