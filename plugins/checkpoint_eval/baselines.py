"""Which checkpoint a candidate is compared with: a folder, a run, or by policy what the landing ledger has below it.

A choice by step, never by which evaluation happens to be ready. Knows the library, not Airflow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eval_tasks.records import Run
    from eval_tasks.store import LandingRow, Store

BASELINE_POLICIES = ("none", "previous", "first")


def baseline_arm(store: Store, params: dict[str, Any], tier: str) -> list[tuple[str, str, str, int | None, str]]:
    """The baseline as (role, uri, training run, step, awaited): a folder, or what the ledger has at a lower step.

    ``previous`` and ``first`` are the nearest and the earliest landing below the candidate's step that was dispatched:
    a choice by step, not by which evaluation happens to be ready. One that this tier evaluates anyway is awaited.
    """
    baseline, training_run = params.get("baseline") or "none", params["training_run"]
    if "/" in baseline:
        return [("baseline", baseline, f"{training_run}-baseline", None, "")]
    row = _landing(store, params)
    if row is None:
        return []
    awaited = next((dag_run for dag_run in row.dag_runs if dag_run.startswith(f"{tier}__")), "")
    return [("baseline", row.landing.uri, training_run, row.landing.step, awaited)]


def stored_baseline(store: Store, params: dict[str, Any], candidate: Run) -> Run | None:
    """The finished run of a baseline that is not an arm, since its checkpoint is gone by now."""
    row = _landing(store, params)
    if row is None:
        return None
    runs = store.catalog.runs(training_run=params["training_run"], suite=candidate.request.suite, status="closed")
    for run in runs:
        same = (run.request.suite_id, run.environment) == (candidate.request.suite_id, candidate.environment)
        if same and run.step == row.landing.step and run.repeat == 0 and store.catalog.guard(run.run_id) is not None:
            return run
    return None


def _landing(store: Store, params: dict[str, Any]) -> LandingRow | None:
    baseline, step = params.get("baseline"), params.get("step")
    if baseline not in ("previous", "first") or step is None:
        return None
    landings = store.catalog.landings(training_run=params["training_run"], state="dispatched")
    earlier = [row for row in landings if row.landing.step < step]
    pick = max if baseline == "previous" else min
    return pick(earlier, key=lambda row: (row.landing.step, row.landing.landing_id)) if earlier else None
