"""What an embedded home is made of: secrets that are the owner's alone, and a port that is free."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkpoint_eval.embedded.home import EmbeddedError, Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(root=tmp_path / "home")


@pytest.fixture
def taken() -> Iterator[int]:
    """A port of loopback that another program listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_secrets_are_readable_by_their_owner_only(home: Home) -> None:
    chosen = home.prepare(None)
    for path in (home.chosen, home.airflow / "passwords.json"):
        assert path.stat().st_mode & 0o077 == 0
        assert chosen["password"] in path.read_text("utf-8")
    for folder in (home.root, home.run, home.logs, home.airflow, home.kubeconfig.parent):
        assert folder.stat().st_mode & 0o077 == 0


def test_secrets_and_port_stay_from_one_start_to_the_next(home: Home) -> None:
    assert home.prepare(None) == home.prepare(None)


def test_a_port_that_somebody_else_took_meanwhile_is_changed(home: Home, taken: int) -> None:
    first = home.prepare(None)
    home.chosen.write_text(json.dumps(first | {"port": str(taken)}), "utf-8")
    second = home.prepare(None)
    assert int(second["port"]) != taken
    assert second["password"] == first["password"]


def test_a_wanted_port_that_is_taken_is_refused(home: Home, taken: int) -> None:
    with pytest.raises(EmbeddedError, match=f"port {taken} on 127.0.0.1 is taken"):
        home.prepare(taken)


def test_what_runs_is_not_moved_to_another_port(home: Home) -> None:
    chosen = home.prepare(None)
    assert home.running(None) == home.running(int(chosen["port"])) == chosen
    with pytest.raises(EmbeddedError, match=f"is up on port {chosen['port']}; stop it first"):
        home.running(int(chosen["port"]) + 1)
    assert home.running(None) == chosen


def test_a_callers_exceptions_from_its_proxy_are_kept(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "storage.example")
    assert home.environment(home.prepare(None))["NO_PROXY"] == "storage.example,127.0.0.1,localhost"
