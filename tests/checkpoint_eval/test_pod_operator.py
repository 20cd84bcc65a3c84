"""What the operator says when the API server refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("status", "said", "final", "expected"),
    [
        (403, 'pods is forbidden: User "a" cannot create resource "pods"', True, "that verb"),
        (403, 'pods "x" is forbidden: exceeded quota: checkpoint-eval', False, "exceeded quota"),
        (401, "Unauthorized", True, "credentials in the connection"),
        (404, 'namespaces "evals" not found', True, "mend the environment"),
        (404, 'pods "x" not found', False, "not found"),
        (422, 'Pod "x" is invalid: spec.nodeSelector', True, "mend the environment"),
        (503, "the server is currently unable to handle the request", False, "unable"),
    ],
)
def test_a_refusal_is_told_and_is_final_only_where_a_person_must_act(
    airflow_home: Path,
    status: int,
    said: str,
    final: bool,
    expected: str,
) -> None:
    from airflow.sdk.exceptions import AirflowFailException
    from kubernetes.client.exceptions import ApiException

    from checkpoint_eval.pod_operator import refusal

    error = ApiException(status=status, reason="reason")
    error.body = json.dumps({"message": said})
    found = refusal(error)
    assert said in str(found) and expected in str(found)
    assert isinstance(found, AirflowFailException) is final
    error.body = "<html>"
    assert "reason" in str(refusal(error))
