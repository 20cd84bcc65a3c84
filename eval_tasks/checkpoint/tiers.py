"""A ready landing -> the DAG runs that evaluate it: deterministic ids, so that firing twice starts nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from eval_tasks.records import Landing
from eval_tasks.records.benchmark import Tier

# Release evaluations are started by a person, never by a landing.
WATCHED_TIERS: tuple[Tier, ...] = ("health", "selection")


class Policy(Protocol):
    """What a tier runs and when (`settings.TierPolicy` has it)."""

    @property
    def suite(self) -> str: ...  # noqa: D102

    @property
    def every(self) -> int: ...  # noqa: D102

    @property
    def baseline(self) -> str: ...  # noqa: D102

    @property
    def rule(self) -> str | None: ...  # noqa: D102

    @property
    def coalesce_beyond(self) -> int | None: ...  # noqa: D102


class EvaluatedRun(Protocol):
    """What the tiers need to know of a training run (`settings.TrainingRun` has it)."""

    @property
    def health(self) -> Policy | None: ...  # noqa: D102

    @property
    def selection(self) -> Policy | None: ...  # noqa: D102

    @property
    def environment(self) -> str | None: ...  # noqa: D102

    @property
    def corpora(self) -> tuple[str, ...]: ...  # noqa: D102


def dag_run_id(tier: Tier, landing: Landing) -> str:
    """The id of the DAG run that evaluates this landing in this tier; fits Airflow's ``[A-Za-z0-9_.~:+-]+``."""
    return f"{tier}__{landing.training_run}__{landing.step}__{landing.landing_id[:12]}"


def tier_of(run_id: str) -> str:
    """The tier in an id that `dag_run_id` made."""
    return run_id.partition("__")[0]


def planned_runs(run: EvaluatedRun, landing: Landing, *, counted: bool, promoted: bool) -> tuple[str, ...]:
    """Ids of the DAG runs a landing gets. `counted`: it is a k-th one; `promoted`: its promote marker is there."""
    tiers: list[Tier] = []
    if run.health is not None:
        tiers.append("health")
    if run.selection is not None and (counted or promoted):
        tiers.append("selection")
    return tuple(dag_run_id(tier, landing) for tier in tiers)


def dispatches(run: EvaluatedRun, landing: Landing, dag_runs: Sequence[str]) -> list[dict[str, Any]]:
    """Arguments for starting each of `dag_runs`: DAG id, run id, conf. A tier that is configured no more has none."""
    started = []
    for tier in WATCHED_TIERS:
        policy = run.health if tier == "health" else run.selection
        run_id = dag_run_id(tier, landing)
        if policy is None or run_id not in dag_runs:
            continue
        conf = {
            "landing_id": landing.landing_id,
            "training_run": landing.training_run,
            "step": landing.step,
            "checkpoint_uri": landing.uri,
            "tier": tier,
            "suite": policy.suite,
            "baseline": policy.baseline,
            "rule": policy.rule,
            "environment": run.environment,
            "corpora": list(run.corpora),
        }
        started.append({"trigger_dag_id": f"evaluate_{tier}", "trigger_run_id": run_id, "conf": conf})
    return started
