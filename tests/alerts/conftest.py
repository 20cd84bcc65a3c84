"""Receivers that live for one test, on loopback whatever proxy the caller has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.alerts.receivers import MailServer, Webhook


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook() as server:
        yield server


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with MailServer() as server:
        yield server
