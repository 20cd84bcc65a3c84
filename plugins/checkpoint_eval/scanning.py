"""What each task of the contamination scan does: corpora and benchmarks by name in, ids and URIs out.

As `steps`: knows the library and the DAG's parameters, not Airflow; imports of the library are inside the functions.
"""

from __future__ import annotations

import logging
from typing import Any, TypedDict

from checkpoint_eval.steps import now, open_catalog

_log = logging.getLogger(__name__)


class PlannedScan(TypedDict):
    """A scan of one corpus with its plan."""

    corpus: str
    scan_id: str
    plan_uri: str


def plan(params: dict[str, Any]) -> list[PlannedScan]:
    """Plan a scan of each corpus that some benchmark was not checked with under the configured rule."""
    from eval_tasks.contamination.rule import rule_from
    from eval_tasks.contamination.scan import pending, plan_scan
    from eval_tasks.settings import Settings, load_config

    store = open_catalog()
    config = load_config(Settings().config)
    rule = rule_from(config.contamination)
    due = pending(store, rule, corpora=params.get("corpora") or (), benchmarks=params.get("benchmarks") or ())
    # One task maps the pods of all scans: together they stay below what Airflow maps.
    most = max(1, config.limits.max_shards // max(1, len(due)))
    planned = []
    for corpus, benchmark_ids in due[: config.limits.max_shards]:
        scan, uri = plan_scan(
            store, corpus, benchmark_ids, rule, shard_bytes=config.contamination.shard_bytes, max_shards=most
        )
        _log.info("corpus %s: %d benchmarks, %d shards", corpus, len(benchmark_ids), len(scan.shards))
        planned.append(PlannedScan(corpus=corpus, scan_id=scan.scan_id, plan_uri=uri))
    return planned


def pods(planned: list[PlannedScan]) -> list[dict[str, Any]]:
    """Arguments of one pod per shard that is not done yet, over all scans."""
    from checkpoint_eval.pods import scan_pod_kwargs
    from eval_tasks.contamination.scan import load_scan
    from eval_tasks.settings import Settings, load_config

    store = open_catalog()
    settings = Settings()
    config = load_config(settings.config)
    mapped: list[dict[str, Any]] = []
    for each in planned:
        scan = load_scan(store, each["plan_uri"])
        done = store.scans.done(scan.scan_id)
        mapped += scan_pod_kwargs(
            plan_uri=each["plan_uri"],
            scan_id=scan.scan_id,
            shards=[shard for shard in range(len(scan.shards)) if shard not in done],
            environment=config.environment(config.contamination.environment),
            limits=config.limits,
            settings=settings,
        )
    return mapped


def close(planned: list[PlannedScan]) -> list[str]:
    """Record what was found, one check per benchmark and corpus; gives the ids of the benchmarks."""
    from collections import Counter

    from eval_tasks.contamination.scan import close_scan, load_scan

    store = open_catalog()
    names = {b.benchmark_id: f"{b.name}@{b.version}" for b in store.catalog.benchmarks()}
    checked: set[str] = set()
    for each in planned:
        for check in close_scan(store, load_scan(store, each["plan_uri"]), now=now()):
            counts = dict(sorted(Counter(check.rows.values()).items()))
            name = names.get(check.benchmark_id, check.benchmark_id)
            _log.info("%s in %s: %s, problems: %s", name, check.corpus, counts, dict(check.problems))
            checked.add(check.benchmark_id)
    return sorted(checked)


def affected_runs(benchmark_ids: list[str]) -> list[str]:
    """The closed runs whose numbers these checks may speak of: of checkpoints that name corpora."""
    store = open_catalog()
    wanted = set(benchmark_ids)
    return [
        run.run_id
        for run in store.catalog.runs()
        if run.status == "closed"
        and wanted & set(run.request.benchmark_ids)
        and store.catalog.corpora_of(run.request.checkpoint_id)
    ]
