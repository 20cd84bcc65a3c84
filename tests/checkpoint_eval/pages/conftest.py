"""The app of the API's tests, and the pages' own beside it on the same store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from checkpoint_eval.pages.page import ROOT
from eval_tasks.settings import Settings
from eval_tasks.store import Store
from tests.answered import answered, checkpoint  # noqa: F401
from tests.checkpoint_eval.api.conftest import alert, app, token_of, two_runs  # noqa: F401

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.testclient import TestClient

Client = Callable[[str], "TestClient"]
UNDER = ROOT.removeprefix("/checkpoint-eval")


@pytest.fixture
def client(app: FastAPI, store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:  # noqa: F811
    """client(role) -> a client with that role's session cookie, as a browser has it; ``anonymous`` has none."""
    from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN
    from starlette.testclient import TestClient

    from checkpoint_eval.api.archive import opened

    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(settings.home))
    (pages,) = [route.app for route in app.routes if getattr(route, "path", "") == UNDER]
    for each in (app, pages):
        each.dependency_overrides[opened] = lambda: store
    with ExitStack() as stack:

        def of(role: str) -> TestClient:
            cookies = {} if role == "anonymous" else {COOKIE_NAME_JWT_TOKEN: token_of(role)}
            # A browser says where a form was sent from.
            headers = {"Origin": "http://testserver"}
            return stack.enter_context(
                TestClient(app, raise_server_exceptions=False, headers=headers, cookies=cookies, follow_redirects=False)
            )

        yield of
    for each in (app, pages):
        each.dependency_overrides.clear()
