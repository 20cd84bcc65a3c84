"""What the routes give of a store with two runs, and what they say of what is not there."""

from __future__ import annotations

import io
import math
from dataclasses import fields

import pyarrow as pa
import pytest

from checkpoint_eval.api.routes.items import ARROW_SCHEMA, Answer, ShownItem
from eval_tasks.item_pages import ItemScore
from eval_tasks.records import Alert
from eval_tasks.store import Store
from tests.checkpoint_eval.api.conftest import ROOT, Client, ok


def test_runs_are_listed_by_pages_and_filters(client: Client, two_runs) -> None:
    asking = client("viewer")
    first = ok(asking.get(f"{ROOT}/runs", params={"limit": 1}))
    second = ok(asking.get(f"{ROOT}/runs", params={"limit": 1, "after": first["after"]}))
    listed = [page["runs"][0]["run_id"] for page in (first, second)]
    assert sorted(listed) == sorted(two_runs)
    assert second["after"] is None
    assert ok(asking.get(f"{ROOT}/runs", params={"training_run": "no-such"}))["runs"] == []
    assert asking.get(f"{ROOT}/runs", params={"after": "zz"}).status_code == 404
    assert asking.get(f"{ROOT}/runs", params={"limit": 0}).status_code == 422


def test_a_run_has_its_numbers_with_their_errors(client: Client, store: Store, two_runs) -> None:
    found = ok(client("viewer").get(f"{ROOT}/runs/{two_runs[0][:10]}"))
    assert found["run"]["run_id"] == two_runs[0]
    by_name = {(m["benchmark"], m["metric"]): m for m in found["measurements"]}
    shown, stored = by_name["colours", "acc"], store.catalog.measurements(two_runs[0])
    assert shown["score"] == next(m.score for m in stored if (m.benchmark, m.metric) == ("colours", "acc"))
    assert {"n", "se", "ci95", "companion", "contamination"} <= set(shown)
    assert client("viewer").get(f"{ROOT}/runs/{two_runs[0]}/report").status_code == 404


def test_items_are_read_by_pages_to_the_last(client: Client, two_runs) -> None:
    asking, seen, after = client("viewer"), [], None
    while True:
        params = {"benchmark": "colours", "limit": 30, **({"after": after} if after else {})}
        page = ok(asking.get(f"{ROOT}/runs/{two_runs[0]}/items", params=params))
        seen += [item["item_id"] for item in page["items"]]
        if (after := page["after"]) is None:
            break
    assert seen == [f"c{n:03d}" for n in range(70)]
    item = page["items"][0]
    assert item["prompt"].startswith("Which of these is number")
    # The rows were written by hand, under no prompt's digest.
    assert item["prompt_check"] == "differs from what was recorded"
    assert {score["metric"] for score in item["scores"]} >= {"acc", "acc_norm"}


def test_items_that_differ_between_two_runs_stand_side_by_side(client: Client, store: Store, two_runs) -> None:
    params = {"benchmark": "colours", "discordant_with": two_runs[1], "limit": 200}
    page = ok(client("viewer").get(f"{ROOT}/runs/{two_runs[0]}/items", params=params))
    assert 0 < page["n"] == len(page["items"]) < 70
    for item in page["items"]:
        own, other = (next(s["value"] for s in item[k] if s["metric"] == "acc") for k in ("scores", "other_scores"))
        assert own != other
        assert item["other"]["logprobs"] != item["answer"]["logprobs"]


def test_items_come_as_an_arrow_stream_when_asked(client: Client, two_runs) -> None:
    answer = client("viewer").get(
        f"{ROOT}/runs/{two_runs[0]}/items",
        params={"benchmark": "colours", "limit": 5},
        headers={"Accept": "application/vnd.apache.arrow.stream"},
    )
    table = pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()
    assert table["item_id"].to_pylist() == [f"c{n:03d}" for n in range(5)]
    assert table.schema.metadata[b"n"] == b"70"


def test_arrow_pages_have_one_schema_whatever_they_hold(client: Client, two_runs) -> None:
    def page(**params: str) -> pa.Table:
        answer = client("viewer").get(
            f"{ROOT}/runs/{two_runs[0]}/items",
            params={"benchmark": "colours", "limit": 5, **params},
            headers={"Accept": "application/vnd.apache.arrow.stream"},
        )
        return pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()

    full, empty, beside = page(), page(status="invalid"), page(discordant_with=two_runs[1])
    assert (len(full), len(empty)) == (5, 0)
    assert full["other"].null_count == 5
    assert beside["other"].null_count == 0
    assert full.schema.equals(empty.schema)
    assert full.schema.equals(beside.schema)


def test_the_arrow_schema_names_every_field_of_an_item() -> None:
    score = {field.name for field in fields(ItemScore)}
    assert ARROW_SCHEMA.names == list(ShownItem.model_fields)
    for column in ("answer", "other"):
        assert {field.name for field in ARROW_SCHEMA.field(column).type} == set(Answer.model_fields)
    for column in ("scores", "other_scores"):
        assert {field.name for field in ARROW_SCHEMA.field(column).type.value_type} == score


def test_what_is_not_finite_is_null(client: Client, answered) -> None:
    def broken(name: str, n: int) -> dict[str, object]:
        if name != "colours" or n != 3:
            return {}
        values = (math.nan, -math.inf, -1.0, -2.0)
        changed = {"status": "invalid", "reason": "non_finite_logits"}
        return changed | {"logprobs": values, "token_logprobs": tuple((v,) for v in values)}

    run_id = answered(broken)
    params = {"benchmark": "colours", "status": "invalid"}
    page = ok(client("viewer").get(f"{ROOT}/runs/{run_id}/items", params=params))
    assert [item["item_id"] for item in page["items"]] == ["c003"]
    assert page["items"][0]["answer"]["logprobs"] == [None, None, -1.0, -2.0]


def test_two_runs_are_compared_and_the_comparison_is_kept(client: Client, two_runs) -> None:
    asking = client("user")
    made = ok(asking.post(f"{ROOT}/compare", json={"a": [two_runs[0]], "b": [two_runs[1]]}))
    assert made["comparison"]["exploratory"]
    assert made["diagnoses"]
    kept = ok(client("viewer").get(f"{ROOT}/comparisons/{made['comparison_id']}"))
    assert kept == made
    listed = ok(client("viewer").get(f"{ROOT}/comparisons", params={"run_id": two_runs[1]}))
    assert [c["comparison_id"] for c in listed] == [made["comparison_id"]]
    again = ok(asking.post(f"{ROOT}/compare", json={"a": [two_runs[0]], "b": [two_runs[1]]}))
    assert again["comparison_id"] == made["comparison_id"]
    assert ok(client("viewer").get(f"{ROOT}/runs/{two_runs[0]}"))["comparisons"] == [made["comparison_id"]]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"a": ["nope"], "b": ["nope"]}, 404, "no run 'nope'"),
        ({"a": [], "b": ["x"]}, 422, "body.a"),
        ({"a": ["x"], "b": ["x"], "colour": 1}, 422, "body.colour"),
        ({"a": ["x"], "b": ["x"], "alpha": 2}, 422, "body.alpha"),
        ({"a": ["x"], "b": ["x"], "rule": "no-rule"}, 404, "no decision rule 'no-rule'"),
    ],
)
def test_a_question_that_cannot_be_answered_says_why(client: Client, body, status: int, said: str) -> None:
    answer = client("user").post(f"{ROOT}/compare", json=body)
    assert answer.status_code == status
    assert said in answer.json()["detail"]


def test_what_is_registered_is_listed(client: Client, two_runs) -> None:
    asking = client("viewer")
    assert {b["name"] for b in ok(asking.get(f"{ROOT}/benchmarks"))} == {"colours", "colour-text", "colour-sums"}
    assert ok(asking.get(f"{ROOT}/benchmarks/colours"))["kind"] == "choice"
    assert asking.get(f"{ROOT}/benchmarks/colour").json()["detail"].endswith("'colour-sums'")
    assert [s["name"] for s in ok(asking.get(f"{ROOT}/suites"))] == ["colours-all"]
    assert ok(asking.get(f"{ROOT}/contamination", params={"benchmark": "colours"})) == []
    for name in ("rules", "graders", "corpora", "environments", "baselines", "nights", "blocks", "training-runs"):
        assert isinstance(ok(asking.get(f"{ROOT}/{name}")), list), name


def test_an_alert_is_acknowledged_once_in_the_callers_name(client: Client, alert: Alert) -> None:
    asking = client("user")
    assert [a["alert_id"] for a in ok(asking.get(f"{ROOT}/alerts", params={"acknowledged": False}))] == [alert.alert_id]
    path = f"{ROOT}/alerts/{alert.alert_id[:8]}/acknowledge"
    assert asking.post(path, json={"reason": ""}).status_code == 422
    assert ok(asking.post(path, json={"reason": "a broken template"}))["acknowledged_by"] == "user"
    again = client("op").post(path, json={"reason": "me too"})
    assert again.status_code == 400
    assert "'user'" in again.json()["detail"]


def test_a_block_is_explained_in_the_callers_name(client: Client, store: Store, two_runs) -> None:
    from eval_tasks.records.determinism import Block

    block_id = store.catalog.open_block("f" * 64, "rows differ", "2026-01-01T00:00:00+00:00", run_id=two_runs[0])
    asking = client("op")
    assert isinstance(store.catalog.block(block_id), Block)
    assert ok(asking.get(f"{ROOT}/blocks/{block_id}"))["block"]["explained_at"] is None
    said = {"outcome": "baseline kept", "reason": "a driver was rolled back"}
    assert ok(asking.post(f"{ROOT}/blocks/{block_id}/explain", json=said))["explained_by"] == "op"
    assert client("admin").post(f"{ROOT}/blocks/{block_id}/explain", json=said).status_code == 400
    assert ok(asking.get(f"{ROOT}/blocks")) == []


def test_health_of_an_unknown_training_run_names_close_ones(client: Client) -> None:
    answer = client("viewer").get(f"{ROOT}/training-runs/llama/health")
    assert answer.status_code == 404
    assert "no training run 'llama'" in answer.json()["detail"]


def test_the_openapi_document_names_every_route_and_its_problems(app, client: Client) -> None:
    document = ok(client("viewer").get(f"{ROOT}/openapi.json"))
    assert document["servers"] == [{"url": "/checkpoint-eval"}]
    operations = [o for path in document["paths"].values() for o in path.values()]
    assert len(operations) > 20
    for operation in operations:
        assert operation["summary"]
        assert {"401", "403", "422", "429", "503"} <= set(operation["responses"])
        assert "application/problem+json" in operation["responses"]["401"]["content"]
