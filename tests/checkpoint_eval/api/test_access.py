"""Every route, as anonymous, viewer, user, operator and admin: nothing is open, and each may do what is its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.checkpoint_eval.api.conftest import ROLES, ROOT, Client, token_of

# Method and path of every write, with the least role that may do it.
WRITES = {
    ("POST", "/runs"): "user",
    ("POST", "/compare"): "user",
    ("POST", "/alerts/{alert_id}/acknowledge"): "user",
    ("POST", "/blocks/{block_id}/explain"): "op",
}


def _routes(app) -> Iterator[tuple[str, str]]:
    from starlette.routing import Mount, Route

    for route in app.routes:
        if isinstance(route, Mount):  # the pages, whose doors have tests of their own
            continue
        assert isinstance(route, Route)
        for method in sorted(route.methods - {"HEAD"}):
            yield method, route.path.removeprefix(ROOT)


def _path(template: str) -> str:
    return f"{ROOT}{template.replace('{', '').replace('}', '')}"


def test_the_writes_are_those_that_are_known(app) -> None:
    assert {route for route in _routes(app) if route[0] != "GET"} == set(WRITES)
    assert len(list(_routes(app))) > 20


@pytest.mark.parametrize("role", ["anonymous", *ROLES])
def test_each_role_may_do_what_is_its_own(app, client: Client, role: str) -> None:
    """A body that is refused as input (422), or a name that is not there (404), has come past the door."""
    asking = client(role)
    for method, template in _routes(app):
        answer = asking.request(method, _path(template), json={} if method == "POST" else None)
        least = WRITES.get((method, template), "viewer")
        if role == "anonymous":
            assert answer.status_code == 401, (method, template)
        elif ROLES.index(role) < ROLES.index(least):
            assert answer.status_code == 403, (method, template)
        else:
            assert answer.status_code in (200, 400, 404, 422), (method, template, answer.text)
        if not answer.is_success:
            assert answer.headers["content-type"] == "application/problem+json"
            assert set(answer.json()) == {"type", "title", "status", "detail", "instance"}


def test_a_torn_or_foreign_token_is_no_user(client: Client) -> None:
    asking = client("anonymous")
    for token in ("nonsense", token_of("admin")[:-4] + "AAAA"):
        answer = asking.get(f"{ROOT}/runs", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code in (401, 403)


def test_a_fault_says_nothing_of_the_inside(app, client: Client) -> None:
    from checkpoint_eval.api.archive import opened

    def broken() -> None:
        raise RuntimeError("postgresql://user:secret@host")

    asking = client("viewer")
    app.dependency_overrides[opened] = broken
    answer = asking.get(f"{ROOT}/runs")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "log" in answer.json()["detail"]
