"""Requests made from the OpenAPI document, sound and unsound: no fault, no answer that the document does not have."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import schemathesis

from tests.checkpoint_eval.api.conftest import ROOT, Client, ok, token_of

pytestmark = pytest.mark.full


def test_every_route_keeps_to_the_document(app, client: Client, two_runs, alert, monkeypatch) -> None:
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis.specs.openapi import checks as known

    # A parameter that is given twice, of which FastAPI takes the last, is no request to be refused.
    checks = [known.status_code_conformance, known.content_type_conformance, known.response_schema_conformance]

    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://127.0.0.1:9")
    document = ok(client("viewer").get(f"{ROOT}/openapi.json"))
    document["servers"] = [{"url": "/"}]
    schema = schemathesis.openapi.from_dict(document)
    schema.app = app
    quiet = settings(
        max_examples=25,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    tried: set[str] = set()
    statuses: set[int] = set()
    for result in schema.get_all_operations():
        operation = result.ok()

        sound, unsound = (operation.as_strategy(generation_mode=mode) for mode in schemathesis.GenerationMode)

        @quiet
        @given(case=sound | unsound)
        def ask(case: Any) -> None:
            headers = {"Authorization": f"Bearer {token_of('admin')}"}
            answer = case.call(headers=headers)
            tried.add(f"{case.method} {case.path}")
            statuses.add(answer.status_code)
            assert answer.status_code < 500 or answer.status_code == 503, answer.text
            case.validate_response(answer, checks=checks)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ask()
    assert len(tried) == sum(len(path) for path in document["paths"].values())
    # Whether a draw meets one of the few 400s is chance; `test_routes` and `test_airflow_runs` ask for them.
    assert {200, 404, 422} <= statuses
