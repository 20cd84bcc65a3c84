"""Writes from other sites, bodies too large and callers too fast are refused before any route."""

from __future__ import annotations

import pytest

from tests.checkpoint_eval.api.conftest import ROOT, Client, token_of

FOREIGN = [{"Origin": "https://elsewhere.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {}]
OWN = [{"Origin": "http://testserver"}, {"Sec-Fetch-Site": "same-origin"}]


def _with_cookie(client: Client):
    asking = client("anonymous")
    asking.cookies.set("_token", token_of("admin"))
    return asking


@pytest.mark.parametrize("headers", FOREIGN)
def test_a_cookie_is_no_leave_to_write_from_another_site(client: Client, headers: dict[str, str]) -> None:
    asking = _with_cookie(client)
    assert asking.get(f"{ROOT}/runs", headers=headers).status_code == 200
    answer = asking.post(f"{ROOT}/compare", json={"a": ["x"], "b": ["y"]}, headers=headers)
    assert answer.status_code == 403
    assert "another site" in answer.json()["detail"]


@pytest.mark.parametrize("headers", OWN)
def test_a_page_of_this_server_may_write_with_its_cookie(client: Client, headers: dict[str, str]) -> None:
    answer = _with_cookie(client).post(f"{ROOT}/compare", json={"a": ["x"], "b": ["y"]}, headers=headers)
    assert answer.status_code == 404


def test_a_body_has_a_size(client: Client) -> None:
    asking = client("user")
    large = b'{"a": ["' + b"x" * 2_000_000 + b'"]}'
    assert asking.post(f"{ROOT}/compare", content=large).status_code == 413
    chunks = (large[at : at + 65_536] for at in range(0, len(large), 65_536))
    answer = asking.post(f"{ROOT}/compare", content=chunks, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


def test_a_caller_who_writes_too_fast_waits_and_others_do_not(client: Client) -> None:
    fast, other = client("user"), client("op")
    statuses = [fast.post(f"{ROOT}/compare", json={}).status_code for _ in range(60)]
    assert 429 in statuses
    assert fast.post(f"{ROOT}/compare", json={}).headers.get("retry-after") in ("2", None)
    assert other.post(f"{ROOT}/compare", json={}).status_code == 422
