"""What this system measures of itself, handed to Airflow's own metrics (OpenTelemetry, StatsD or Datadog).

`METRICS` is the closed set of names; Airflow puts its prefix before each. A person looks at them in
`helm/grafana-dashboard.json`. Nothing is sent while Airflow has no metrics configured. Imports of Airflow and of the
library are inside the functions, since DAG files are parsed with this module loaded.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from eval_tasks.records import CostEntry
    from eval_tasks.settings import Config
    from eval_tasks.store import LandingRow, Store

_QUEUED = ("waiting", "ready", "dispatched")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric: how it is counted, its tags and what it says. A ``timing`` is in milliseconds, as Airflow's are."""

    kind: Literal["counter", "gauge", "timing"]
    tags: tuple[str, ...]
    meaning: str


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "checkpoint_eval.landings": Metric(
            kind="gauge",
            tags=("training_run", "state"),
            meaning="checkpoints that wait for their files, for their start, or for the end of what was started",
        ),
        "checkpoint_eval.gate_queue": Metric(
            kind="gauge", tags=("environment",), meaning="evaluations that wait at the gate of an environment"
        ),
        "checkpoint_eval.blocks": Metric(
            kind="gauge", tags=("environment",), meaning="blocks that nobody has explained"
        ),
        "checkpoint_eval.alerts": Metric(kind="gauge", tags=("kind",), meaning="alerts that nobody has acknowledged"),
        "checkpoint_eval.alerts_sent": Metric(kind="counter", tags=(), meaning="alerts that a channel has taken"),
        "checkpoint_eval.landing_to_verdict": Metric(
            kind="timing",
            tags=("tier", "training_run"),
            meaning="from when a checkpoint's last listing was first seen to its report",
        ),
        "checkpoint_eval.last_landing_to_verdict_seconds": Metric(
            kind="gauge",
            tags=("tier", "training_run"),
            meaning="the same of the last one, in seconds",
        ),
        "checkpoint_eval.items": Metric(kind="counter", tags=("tier", "environment"), meaning="items evaluated"),
        "checkpoint_eval.device_seconds": Metric(
            kind="counter", tags=("tier", "environment"), meaning="device-seconds that pods took, failed ones too"
        ),
        "checkpoint_eval.items_per_second": Metric(
            kind="gauge", tags=("tier", "environment"), meaning="items per device-second of the last run"
        ),
    }
)


def begin() -> None:
    """Set Airflow's metrics up in a process where it does not: the triggerer's, which runs the watcher."""
    from airflow.sdk.configuration import conf
    from airflow.sdk.observability import stats
    from airflow.sdk.observability.metrics.stats_utils import get_stats_factory

    stats.initialize(
        factory=get_stats_factory(), export_legacy_names=conf.getboolean("metrics", "legacy_names_on", fallback=False)
    )


class Standing:
    """The gauges of what stands in the catalog. What was seen once is shown as 0 when it is gone, not as it was."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, tuple[str, ...]]] = set()

    def tell(self, store: Store, config: Config) -> None:
        """Say how many landings, waiting evaluations, blocks and alerts stand. Raises InfraError without a catalog."""
        values: dict[str, Counter[tuple[str, ...]]] = {
            "landings": Counter(
                (run.name, row.state)
                for run in config.training_runs
                for row in store.catalog.landings(run.name)
                if row.state in _QUEUED and not _ended(row)
            ),
            "gate_queue": Counter({(e.name,): len(store.catalog.tickets(e.name)) for e in config.environments}),
            "blocks": Counter((block.environment,) for block in store.catalog.open_blocks()),
            "alerts": Counter((alert.kind,) for alert in store.catalog.alerts(acknowledged=False)),
        }
        for name, counted in values.items():
            self._gauges(f"checkpoint_eval.{name}", counted)

    def _gauges(self, name: str, values: Mapping[tuple[str, ...], int]) -> None:
        self._seen |= {(name, key) for key in values}
        for key in sorted(key for seen, key in self._seen if seen == name):
            _gauge(name, values.get(key, 0), key)


def told_verdict(row: LandingRow, tier: str, now: datetime) -> None:
    """A landing's evaluation has its report."""
    took = max(now - datetime.fromisoformat(row.first_seen_at).astimezone(UTC), timedelta(0))
    key = (tier, row.landing.training_run)
    _gauge("checkpoint_eval.last_landing_to_verdict_seconds", took.total_seconds(), key)
    if stats := _stats():
        name = "checkpoint_eval.landing_to_verdict"
        stats.timing(name, took, tags=_tags(name, key))


def told_cost(entry: CostEntry) -> None:
    """A run has closed; `entry` says what it took."""
    cost, key = entry.actual, (entry.tier, entry.environment)
    if cost is None:
        return
    _count("checkpoint_eval.items", cost.items, key)
    if cost.device_seconds:
        _count("checkpoint_eval.device_seconds", round(cost.device_seconds), key)
        _gauge("checkpoint_eval.items_per_second", cost.items / cost.device_seconds, key)


def told_alerts(sent: int) -> None:
    """Alerts were taken by their channels."""
    if sent:
        _count("checkpoint_eval.alerts_sent", sent, ())


def _ended(row: LandingRow) -> bool:
    return row.state == "dispatched" and not set(row.dag_runs) - set(row.finished)


def _gauge(name: str, value: float, key: tuple[str, ...]) -> None:
    if stats := _stats():
        stats.gauge(name, value, tags=_tags(name, key))


def _count(name: str, n: int, key: tuple[str, ...]) -> None:
    if stats := _stats():
        stats.incr(name, n, tags=_tags(name, key))


def _stats() -> Any:
    """Airflow's metrics in a process of Airflow's; None in any other: nobody would take them, and importing costs."""
    if "airflow.sdk" not in sys.modules:
        return None
    from airflow.sdk.observability import stats

    return stats


def _tags(name: str, key: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(METRICS[name].tags, (value or "none" for value in key), strict=True))
