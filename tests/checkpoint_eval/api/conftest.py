"""The app in this process, with Airflow's own simple auth manager, one client per role, and a store with two runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eval_tasks.records import Alert
from eval_tasks.store import Store
from tests.answered import answered, checkpoint, right  # noqa: F401

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.testclient import TestClient

ROLES = ("viewer", "user", "op", "admin")
ROOT = "/api/v1"
Client = Callable[[str], "TestClient"]


@pytest.fixture(scope="session")
def app(airflow_db: Path) -> Iterator[FastAPI]:
    """The app as the API server makes it, over Airflow's database."""
    before = dict(os.environ)
    os.environ |= {
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{role}:{role}" for role in ROLES),
        "AIRFLOW__API_AUTH__JWT_SECRET": "a secret of the tests, as long as the signature wants it to be: 64 bytes",
        "AIRFLOW__API__BASE_URL": "http://testserver",
    }
    from airflow.api_fastapi.app import init_auth_manager, purge_cached_app

    from checkpoint_eval.api.app import build_app

    purge_cached_app()
    init_auth_manager()
    yield build_app()
    purge_cached_app()
    os.environ.clear()
    os.environ |= before


def token_of(role: str) -> str:
    """A token as Airflow gives it to a user of that role."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    return str(get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=role, role=role)))


@pytest.fixture
def client(app: FastAPI, store: Store) -> Iterator[Client]:
    """client(role) -> a client with that role's token; ``anonymous`` has none. Faults come back as answers."""
    from starlette.testclient import TestClient

    from checkpoint_eval.api.archive import opened

    app.dependency_overrides[opened] = lambda: store
    with ExitStack() as stack:

        def of(role: str) -> TestClient:
            headers = {} if role == "anonymous" else {"Authorization": f"Bearer {token_of(role)}"}
            return stack.enter_context(TestClient(app, raise_server_exceptions=False, headers=headers))

        yield of
    app.dependency_overrides.clear()


@pytest.fixture
def two_runs(answered: Callable[..., str]) -> tuple[str, str]:  # noqa: F811
    """A better and a worse run of one suite."""
    return answered(right(0.9)), answered(right(0.5), repeat=1)


@pytest.fixture
def alert(store: Store) -> Alert:
    """One alert that nobody has seen."""
    raised = Alert(alert_id="a" * 32, kind="excursion", title="0.0 of colours", body="five outputs", created_at=_NOW)
    store.catalog.raise_alert(raised)
    return raised


_NOW = "2026-01-01T00:00:00+00:00"


def ok(response: Any) -> Any:
    """The answer's JSON; fails with the problem document where there is one."""
    assert response.is_success, response.text
    return response.json()
