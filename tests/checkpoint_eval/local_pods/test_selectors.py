"""Label and field selectors choose as Kubernetes does."""

from __future__ import annotations

from typing import Any

import pytest

from checkpoint_eval.local_pods.errors import ApiError
from checkpoint_eval.local_pods.selectors import selector


def labelled(**labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "a", "labels": labels}, "status": {"phase": "Running"}}


@pytest.mark.parametrize(
    ("text", "labels", "chosen"),
    [
        ("a=1", {"a": "1"}, True),
        ("a==1", {"a": "2"}, False),
        ("a!=1", {"a": "1"}, False),
        ("a!=1", {}, True),
        ("a in (1, 2)", {"a": "2"}, True),
        ("a in (1,2)", {}, False),
        ("a notin (1,2)", {}, True),
        ("a notin (1,2)", {"a": "1"}, False),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("!a", {}, True),
        ("a=1,b in (x,y),!c", {"a": "1", "b": "y"}, True),
        ("a=1,b in (x,y),!c", {"a": "1", "b": "y", "c": "z"}, False),
        ("checkpoint-eval/shard=7", {"checkpoint-eval/shard": "7"}, True),
        ("a=", {"a": ""}, True),
    ],
)
def test_labels(text: str, labels: dict[str, str], chosen: bool) -> None:
    assert selector("pods", text, None)(labelled(**labels)) is chosen


@pytest.mark.parametrize(
    ("text", "chosen"),
    [("metadata.name=a", True), ("metadata.name!=a", False), ("status.phase=Running,metadata.name=a", True)],
)
def test_fields(text: str, chosen: bool) -> None:
    assert selector("pods", None, text)(labelled()) is chosen


def test_an_absent_field_is_the_empty_string() -> None:
    assert selector("pods", None, "spec.nodeName=")(labelled())


@pytest.mark.parametrize(("labels", "fields"), [("a=1=2", None), ("a in 1", None), (None, "spec.color=red")])
def test_what_kubernetes_would_refuse_is_refused(labels: str | None, fields: str | None) -> None:
    with pytest.raises(ApiError) as refusal:
        selector("pods", labels, fields)
    assert refusal.value.code == 400
