"""Starting a run through Airflow's API: the caller's token is passed on, and the same key starts one run."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from tests.checkpoint_eval.api.conftest import ROOT, Client, ok


class FakeAirflow(BaseHTTPRequestHandler):
    """The two routes that are used, with Airflow's statuses; `refuse` is a status to answer instead."""

    runs: ClassVar[dict[str, Any]] = {}
    tokens: ClassVar[list[str]] = []
    refuse: ClassVar[int] = 0

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        FakeAirflow.tokens.append(self.headers["Authorization"])
        if self.refuse:
            self._answer(self.refuse, {"detail": "suite: too short"})
        elif body["dag_run_id"] in self.runs:
            self._answer(409, {"detail": "exists"})
        else:
            self.runs[body["dag_run_id"]] = {"state": "queued", "conf": body["conf"], "path": self.path}
            self._answer(200, self.runs[body["dag_run_id"]])

    def do_GET(self) -> None:
        self._answer(200, self.runs[self.path.rsplit("/", 1)[1]])

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeAirflow]]:
    FakeAirflow.runs, FakeAirflow.tokens, FakeAirflow.refuse = {}, [], 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeAirflow)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", f"http://127.0.0.1:{server.server_port}")
    yield FakeAirflow
    server.shutdown()
    server.server_close()
    thread.join()


ORDER = {"checkpoint_uri": "/checkpoints/step-10", "suite": "colours-all", "training_run": "llama", "notes": "first"}


def test_a_release_is_started_as_the_caller_and_once_per_key(client: Client, two_runs, airflow) -> None:
    asking = client("user")
    headers = {"Idempotency-Key": "my order"}
    first = ok(asking.post(f"{ROOT}/runs", json=ORDER, headers=headers))
    second = ok(asking.post(f"{ROOT}/runs", json=ORDER, headers=headers))
    assert (first["existed"], second["existed"]) == (False, True)
    assert first["dag_run_id"] == second["dag_run_id"]
    assert set(airflow.tokens) == {asking.headers["Authorization"]}
    (run,) = airflow.runs.values()
    assert run["path"] == "/api/v2/dags/evaluate_release/dagRuns"
    assert run["conf"]["notes"] == "first"
    assert run["conf"]["baseline"] == "none"
    other = asking.post(f"{ROOT}/runs", json=ORDER | {"notes": "second"}, headers=headers)
    assert other.status_code == 409
    assert "'my order'" in other.json()["detail"]


def test_two_users_may_choose_the_same_key(client: Client, two_runs, airflow) -> None:
    headers = {"Idempotency-Key": "my order"}
    ids = {ok(client(who).post(f"{ROOT}/runs", json=ORDER, headers=headers))["dag_run_id"] for who in ("user", "op")}
    assert len(ids) == 2


def test_without_a_key_every_order_is_a_run(client: Client, two_runs, airflow) -> None:
    order = {**ORDER, "tier": "selection"}
    ids = {ok(client("user").post(f"{ROOT}/runs", json=order))["dag_run_id"] for _ in range(2)}
    assert len(ids) == 2
    assert "notes" not in next(iter(airflow.runs.values()))["conf"]


@pytest.mark.parametrize(("airflows", "ours"), [(400, 400), (422, 400), (403, 403), (401, 401), (500, 503)])
def test_what_airflow_refuses_is_refused(client: Client, two_runs, airflow, airflows: int, ours: int) -> None:
    airflow.refuse = airflows
    answer = client("user").post(f"{ROOT}/runs", json=ORDER)
    assert answer.status_code == ours
    if airflows in (400, 422):
        assert "too short" in answer.json()["detail"]


def test_a_suite_or_rule_that_is_not_there_is_refused_before_airflow_is_asked(
    client: Client, two_runs, airflow
) -> None:
    asking = client("user")
    for changes in ({"suite": "no-such"}, {"rule": "no-such"}):
        assert asking.post(f"{ROOT}/runs", json=ORDER | changes).status_code == 404
    assert airflow.runs == {}


def test_an_airflow_that_does_not_answer_is_said_so(client: Client, two_runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://127.0.0.1:9")
    answer = client("user").post(f"{ROOT}/runs", json=ORDER)
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert "base_url" in answer.json()["detail"]


def test_an_airflow_without_an_address_is_named(client: Client, two_runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "")
    answer = client("user").post(f"{ROOT}/runs", json=ORDER)
    assert answer.status_code == 503
    assert "AIRFLOW__API__BASE_URL" in answer.json()["detail"]


def test_starts_that_wait_for_airflow_leave_threads_to_answer_them(
    client: Client, two_runs, airflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    from checkpoint_eval.api import airflow_runs

    monkeypatch.setattr(airflow_runs, "_AT_ONCE", threading.BoundedSemaphore(1))
    with airflow_runs._AT_ONCE:
        answer = client("user").post(f"{ROOT}/runs", json=ORDER)
    assert (answer.status_code, airflow.runs) == (503, {})
    assert answer.headers["retry-after"]
    ok(client("user").post(f"{ROOT}/runs", json=ORDER))
