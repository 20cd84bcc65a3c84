"""What is handed to Airflow's metrics, through its OpenTelemetry logger; the dashboard asks for nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from checkpoint_eval import metrics
from checkpoint_eval.metrics import METRICS
from eval_tasks.records import Alert, Cost, CostEntry, Landing
from eval_tasks.settings import Config
from eval_tasks.store import Store

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
DASHBOARD = Path(__file__).parents[2] / "helm/grafana-dashboard.json"
Points = Callable[[], dict[str, dict[tuple[str, ...], float]]]


@pytest.fixture
def points(airflow_home: Path) -> Iterator[Points]:
    """What OpenTelemetry has got, by name without Airflow's prefix and by the tags' values."""
    from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger
    from airflow.sdk._shared.observability.metrics.otel_logger import SafeOtelLogger
    from airflow.sdk.observability import stats
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    logger = SafeOtelLogger(MeterProvider([reader]), "airflow")
    stats.initialize(factory=lambda: logger, export_legacy_names=True)

    def read() -> dict[str, dict[tuple[str, ...], float]]:
        data = reader.get_metrics_data()
        found: dict[str, dict[tuple[str, ...], float]] = {}
        for metric in data.resource_metrics[0].scope_metrics[0].metrics if data else ():
            name = metric.name.removeprefix("airflow.")
            values: Any = metric.data.data_points
            found[name] = {
                tuple(str(point.attributes[tag]) for tag in METRICS[name].tags): getattr(point, "value", None)
                or getattr(point, "sum", 0)
                for point in values
            }
        return found

    yield read
    stats.initialize(factory=NoStatsLogger, export_legacy_names=True)


def config() -> Config:
    return Config.model_validate(
        {"training_runs": [{"name": "tiny", "uri": "/runs/tiny"}], "environments": [{"name": "local"}]}
    )


def landing(step: int) -> Landing:
    return Landing(training_run="tiny", step=step, uri=f"/runs/tiny/step-{step}", listing=(("a", step, "v"),))


def alert(kind: str) -> Alert:
    return Alert(alert_id=kind[:8], kind=kind, title="t", body="b", created_at=NOW.isoformat())  # type: ignore[arg-type]


def all_of_it(store: Store) -> None:
    """One of everything that is measured."""
    standing = metrics.Standing()
    row = store.catalog.see_landing(landing(1), NOW)
    store.catalog.see_landing(landing(2), NOW)
    store.catalog.mark_landing(landing(2).landing_id, state="dispatched", dag_runs=("a",), now=NOW)
    store.catalog.open_block("f" * 32, "rows changed", NOW, environment="local")
    store.catalog.hold_ticket("t", "local", "p", NOW)
    store.catalog.raise_alert(alert("checkpoint_incomplete"))
    standing.tell(store, config())
    metrics.told_verdict(row, "health", NOW + timedelta(seconds=90))
    cost = Cost(items=1000, tokens=1, device_seconds=50.0)
    metrics.told_cost(
        CostEntry(
            run_id="r",
            training_run="tiny",
            tier="health",
            environment="local",
            created_at=NOW.isoformat(),
            forecast=cost,
            actual=cost,
        )
    )
    metrics.told_alerts(3)


def test_every_metric_is_emitted_with_its_tags_and_value(store: Store, points: Points) -> None:
    all_of_it(store)
    assert points() == {
        "checkpoint_eval.landings": {("tiny", "waiting"): 1, ("tiny", "dispatched"): 1},
        "checkpoint_eval.gate_queue": {("local",): 1},
        "checkpoint_eval.blocks": {("local",): 1},
        "checkpoint_eval.alerts": {("checkpoint_incomplete",): 1},
        "checkpoint_eval.alerts_sent": {(): 3},
        "checkpoint_eval.landing_to_verdict": {("health", "tiny"): 90_000},
        "checkpoint_eval.last_landing_to_verdict_seconds": {("health", "tiny"): 90},
        "checkpoint_eval.items": {("health", "local"): 1000},
        "checkpoint_eval.device_seconds": {("health", "local"): 50},
        "checkpoint_eval.items_per_second": {("health", "local"): 20},
    }
    assert points().keys() == METRICS.keys()


def test_what_is_gone_is_shown_as_none_and_not_as_it_was(store: Store, points: Points) -> None:
    standing = metrics.Standing()
    store.catalog.see_landing(landing(1), NOW)
    block = store.catalog.open_block("f" * 32, "rows changed", NOW, environment="local")
    standing.tell(store, config())
    store.catalog.explain_block(block, "ada", "mended", NOW)
    store.catalog.mark_landing(landing(1).landing_id, state="dispatched", dag_runs=("a",), now=NOW)
    store.catalog.finish_landing(landing(1).landing_id, "a")
    standing.tell(store, config())
    assert points()["checkpoint_eval.blocks"] == {("local",): 0}
    assert points()["checkpoint_eval.landings"] == {("tiny", "waiting"): 0}


def test_names_are_those_that_airflow_and_opentelemetry_take(airflow_home: Path) -> None:
    from airflow.sdk._shared.observability.metrics.otel_logger import name_is_otel_safe

    assert all(name_is_otel_safe("airflow", name) for name in METRICS)


def in_prometheus(name: str) -> set[str]:
    """The names that a metric has in Prometheus, as OpenTelemetry's collector makes them."""
    plain = "airflow_" + name.replace(".", "_")
    return {
        "gauge": {plain},
        "counter": {f"{plain}_total"},
        "timing": {f"{plain}_milliseconds"},
    }[METRICS[name].kind]


def test_the_dashboard_asks_for_what_is_emitted_and_shows_all_of_it() -> None:
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked = {name for expr in expressions for name in re.findall(r"airflow_\w+", expr)}
    known = {each: name for name in METRICS for each in in_prometheus(name)}
    assert asked <= known.keys()
    assert {known[name] for name in asked} == METRICS.keys()
    for expression in expressions:
        for tags in re.findall(r"by \(([^)]*)\)", expression):
            (names,) = {tuple(METRICS[known[n]].tags) for n in re.findall(r"airflow_\w+", expression)}
            assert set(tags.split(", ")) <= set(names), expression


def test_panels_have_their_own_place_and_a_title() -> None:
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)
    assert all(panel["title"] for panel in panels)


def test_documentation_names_every_metric() -> None:
    text = (Path(__file__).parents[2] / "docs/cluster.md").read_text("utf-8")
    assert not [name for name in METRICS if f"`{name}`" not in text]
