"""Starts DAG runs through Airflow's public REST API, as the caller: Airflow's checks and audit log are the ones that
count.
"""

from __future__ import annotations

from http import HTTPStatus
from threading import BoundedSemaphore
from typing import Any
from uuid import uuid4

import httpx
from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN
from airflow.configuration import conf
from fastapi import HTTPException, Request

from eval_tasks.digests import digest_value
from eval_tasks.errors import DataError, InfraError, UserError

_TIMEOUT_SECONDS = 30.0
# Airflow's API is this same server, whose threads (40) answer these calls too: were all of them waiting here, none
# would be left to answer.
_AT_ONCE = BoundedSemaphore(8)


def trigger(
    request: Request, dag_id: str, parameters: dict[str, Any], *, user_id: str, key: str | None
) -> dict[str, Any]:
    """Start `dag_id` with `parameters`; `key` makes the run's id, so that a user's same key starts one run.

    Gives dag_id, dag_run_id, state and whether it existed. Raises UserError for parameters that Airflow refuses,
    DataError for a key that was used with others, HTTPException for rights that the caller lacks, InfraError when
    Airflow does not answer.
    """
    dag_run_id = f"api__{digest_value([dag_id, user_id, key])[:32]}" if key else f"api__{uuid4().hex}"
    body = {"dag_run_id": dag_run_id, "logical_date": None, "conf": parameters}
    answer = _call(request, "POST", f"/dags/{dag_id}/dagRuns", body)
    existed = answer.status_code == HTTPStatus.CONFLICT
    if existed:
        answer = _call(request, "GET", f"/dags/{dag_id}/dagRuns/{dag_run_id}", None)
    if answer.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise HTTPException(answer.status_code, "Airflow does not let you start this DAG")
    if answer.is_client_error:
        raise UserError(f"Airflow refused the run: {_detail(answer)}")
    if not answer.is_success:
        raise InfraError(f"Airflow failed to start the run: status {answer.status_code}; try again")
    started = answer.json()
    if existed and {name: started["conf"].get(name) for name in parameters} != parameters:
        raise DataError(f"idempotency key {key!r} has started {dag_run_id} with other parameters; give a new key")
    return {"dag_id": dag_id, "dag_run_id": dag_run_id, "state": started["state"], "existed": existed}


def _call(request: Request, method: str, path: str, body: dict[str, Any] | None) -> httpx.Response:
    base = conf.get("api", "base_url", fallback="").rstrip("/")
    if not base:
        raise InfraError("Airflow has no [api] base_url, where its own API is reached; set AIRFLOW__API__BASE_URL")
    if not _AT_ONCE.acquire(blocking=False):
        raise InfraError("too many runs are being started at this moment; try again")
    try:
        with httpx.Client(timeout=_TIMEOUT_SECONDS, trust_env=False) as client:
            return client.request(method, f"{base}/api/v2{path}", json=body, headers=_credential(request))
    except httpx.HTTPError as error:
        raise InfraError(
            f"Airflow's API at [api] base_url does not answer ({type(error).__name__}); try again"
        ) from error
    finally:
        _AT_ONCE.release()


def _credential(request: Request) -> dict[str, str]:
    """The caller's own token, wherever it came from."""
    given = request.headers.get("authorization")
    return {"Authorization": given or f"Bearer {request.cookies.get(COOKIE_NAME_JWT_TOKEN, '')}"}


def _detail(answer: httpx.Response) -> str:
    try:
        return str(answer.json().get("detail", answer.reason_phrase))
    except ValueError:
        return answer.reason_phrase
