"""A checkpoint lands beside a live `airflow standalone`, and ends in a verdict."""

from __future__ import annotations

import urllib.error
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.end_to_end.browser import person
from tests.end_to_end.installation import TRAINING_RUN, Installation
from tests.planned import write_checkpoint

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture
def api(standalone: Installation) -> Iterator[httpx.Client]:
    """A client of the REST API with a user's token, as anybody's script would be."""
    endpoint = standalone.endpoint
    credentials = {"username": endpoint.user, "password": endpoint.password}
    token = httpx.post(f"{endpoint.url}/auth/token", json=credentials, trust_env=False).json()["access_token"]
    url, headers = f"{endpoint.url}/checkpoint-eval/api/v1", {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False) as client:
        yield client


def test_landed_checkpoints_are_evaluated_in_step_order_and_end_in_a_verdict(
    standalone: Installation, checkpoint: Path
) -> None:
    standalone.land(10, checkpoint)
    standalone.land(9, checkpoint, pause_seconds=3)
    standalone.wait(lambda: standalone.finished("evaluate_health", 2), "two health evaluations", 600)
    standalone.wait(lambda: standalone.finished("evaluate_selection", 1), "a selection evaluation")
    rows = standalone.store.catalog.landings(training_run=TRAINING_RUN)
    assert {row.landing.step: row.state for row in rows if row.dag_runs} == {9: "dispatched", 10: "dispatched"}
    assert sorted(run for row in rows for run in row.dag_runs) == sorted(
        [*standalone.airflow.dag_runs("evaluate_health"), *standalone.airflow.dag_runs("evaluate_selection")]
    )
    closed = standalone.store.catalog.runs(training_run=TRAINING_RUN, status="closed")
    assert closed
    for run in closed:
        assert standalone.store.catalog.measurements(run.run_id)
        assert {report.format for report in standalone.store.catalog.reports(run.run_id)} == {"html", "json"}


def test_the_same_weights_at_another_step_are_indistinguishable(standalone: Installation, checkpoint: Path) -> None:
    for step in (11, 12):
        standalone.land(step, checkpoint)
    standalone.wait(lambda: standalone.finished("evaluate_selection", 2), "a second selection evaluation", 600)
    comparisons = standalone.store.catalog.comparisons()
    assert comparisons
    assert all(c.verdict in (None, "INDISTINGUISHABLE") for c in comparisons)


def test_a_broken_checkpoint_raises_one_alert_and_holds_up_nobody(standalone: Installation, checkpoint: Path) -> None:
    before = len(standalone.airflow.dag_runs("evaluate_health"))
    folder = standalone.land(20, checkpoint)
    weights = folder / "model.safetensors"
    weights.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "utf-8")
    standalone.land(21, checkpoint)
    standalone.wait(lambda: standalone.finished("evaluate_health", before + 1), "the evaluation of step 21", 600)
    alerts = [alert for alert in standalone.store.catalog.alerts() if "step-20" in alert.title + alert.body]
    assert len(alerts) == 1
    assert "pointer" in alerts[0].title + alerts[0].body


def test_a_release_waits_for_a_person_and_then_ends_in_a_verdict(standalone: Installation, api: httpx.Client) -> None:
    # Weights of their own: those of the training run were evaluated before, and the same content is the same run.
    candidate = write_checkpoint(standalone.home / "release" / "candidate-7", seed=7)
    baseline = write_checkpoint(standalone.home / "release" / "baseline-5", seed=5)
    conf = {
        "checkpoint_uri": str(candidate),
        "training_run": "tiny-release",
        "baseline": str(baseline),
        "suite": "colours-all",
        "rule": "ship-it",
        "notes": "for the release meeting",
    }
    order = {"json": conf, "headers": {"Idempotency-Key": "the release"}}
    started, again = (api.post("/runs", **order).raise_for_status().json() for _ in range(2))
    assert (started["existed"], again["existed"]) == (False, True)
    run_id = started["dag_run_id"]

    def approval() -> bool:
        tasks = standalone.airflow.task_instances("evaluate_release", run_id)
        states = {task["task_id"]: task["state"] for task in tasks}
        assert "failed" not in states.values(), states
        return states.get("approve") in ("deferred", "awaiting_input")

    standalone.wait(approval, "a release that waits for its approval", 400)
    started = [t for t in standalone.airflow.task_instances("evaluate_release", run_id) if "run_shard" in t["task_id"]]
    assert all(task["start_date"] is None for task in started), "a pod was started before the approval"

    def approved_and_finished() -> bool:
        # An answer in the second in which the task began to wait can cross Airflow's own bookkeeping: it asks again.
        if approval():
            with suppress(urllib.error.HTTPError):  # answered, and not taken up yet
                standalone.airflow.answer("evaluate_release", run_id, "approve", "Approve")
        return standalone.finished("evaluate_release", 1)

    standalone.wait(approved_and_finished, "the release evaluation", 600)
    run = standalone.store.catalog.runs(training_run="tiny-release")[0]
    comparison = standalone.store.catalog.comparisons(run.run_id)[-1]
    assert comparison.verdict == "INDISTINGUISHABLE"
    assert not comparison.exploratory
    html = next(r for r in standalone.store.catalog.reports(run.run_id) if r.format == "html")
    assert b"for the release meeting" in standalone.store.blobs.get(html.blob_digest)
    shown = api.get(f"/runs/{run.run_id}").raise_for_status().json()
    assert (shown["reports"], shown["comparisons"]) == (["html", "json"], [comparison.comparison_id])
    items = api.get(f"/runs/{run.run_id}/items", params={"benchmark": "colours"}).raise_for_status().json()["items"]
    assert {item["prompt_check"] for item in items} == {"as recorded"}


def test_the_api_is_behind_airflows_sign_in(api: httpx.Client) -> None:
    assert api.get("/runs").status_code == 200
    assert "/api/v1/runs" in api.get("/openapi.json").json()["paths"]
    del api.headers["Authorization"]
    for path in ("/runs", "/openapi.json", "/alerts"):
        assert api.get(path).status_code == 401, path


def test_people_look_at_the_pages(standalone: Installation, checkpoint: Path) -> None:
    """Signed in at a browser: pages are shown and usable by keyboard and screen reader, and forms do what they say."""
    (run, *_) = standalone.store.catalog.runs(status="closed")
    comparison = standalone.store.catalog.comparisons()[0]
    alert = standalone.store.catalog.alerts(acknowledged=False)[0]
    block_id = standalone.store.catalog.open_block("f" * 64, "planted", run.created_at, environment="elsewhere")
    with person(standalone.endpoint) as someone:
        someone.sign_in()
        for path in ("runs", "training-runs", "comparisons", "benchmarks", "graders", "rules", "costs", "release"):
            someone.open(path)
        someone.open(f"training-runs/{TRAINING_RUN}", "training-run")
        someone.open(f"runs/{run.run_id}", "run")
        someone.page.get_by_role("link", name="Items of colours").first.click()
        someone.page.get_by_role("link", name="c000").click()
        someone.look("item")
        assert "Which of these is number 0?" in someone.page.content()
        someone.open(f"runs/{run.run_id}/items?benchmark=colours", "items")
        someone.open(f"comparisons/{comparison.comparison_id}", "comparison")
        someone.open("alerts")
        someone.open(f"alerts/{alert.alert_id}", "alert")
        someone.page.get_by_label("Reason").fill("looked at it")
        someone.page.get_by_role("button", name="Acknowledge").click()
        someone.page.get_by_text("Acknowledged by admin: looked at it").wait_for()
        someone.open("determinism")
        someone.open(f"blocks/{block_id}", "block")
        someone.page.get_by_label("Reason").fill("planted by a test")
        someone.page.get_by_role("button", name="Explain").click()
        someone.page.get_by_text("planted by a test").wait_for()
        someone.open("release")
        someone.page.get_by_label("Candidate").fill(str(checkpoint))
        someone.page.get_by_role("button", name="Start the release").click()
        someone.page.wait_for_url("**/ui/of/evaluate_release/**")
        someone.look("dag-run")
    assert someone.faults == {}
    assert someone.outside == []
    assert standalone.store.catalog.block(block_id).explained_by == "admin"
    said = standalone.store.catalog.find_alert(alert.alert_id).acknowledged_reason
    assert said is not None and said.startswith("looked at it")
