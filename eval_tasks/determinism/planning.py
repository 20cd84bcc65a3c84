"""An environment and a night -> the plans of its two runs: the fixed suite on the fixed checkpoint, plain and
perturbed.

The same night planned again is the same night: nothing is computed twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from eval_tasks.checkpoint import fetch
from eval_tasks.digests import digest_parts
from eval_tasks.errors import DriftError
from eval_tasks.plan import plan, plan_uri
from eval_tasks.records import Checkpoint, Plan
from eval_tasks.records.determinism import DETERMINISM_RUNS
from eval_tasks.resolve import resolve
from eval_tasks.settings import Config, DeterminismPolicy, Limits

if TYPE_CHECKING:
    from eval_tasks.store import Store

_REPEATS = 2**52  # below what JSON keeps whole


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedNight:
    """The two runs of a night in an environment, and where their plans are."""

    night: str
    environment: str
    run_id: str
    plan_uri: str
    perturbed_run_id: str
    perturbed_plan_uri: str


def plan_night(
    store: Store, *, config: Config, environment: str, night: str, cache_dir: Path, now: str
) -> PlannedNight:
    """Plan both runs. `night` is any text that names it, such as its date.

    Raises UserError when no fixed suite is configured or the environment or the suite is unknown, DriftError when the
    fixed checkpoint is not the one that the baselines are of.
    """
    policy = config.nightly()
    spec = config.environment(environment)
    checkpoint = resolve(store, checkpoint_uri=policy.checkpoint, training_run=f"{DETERMINISM_RUNS}{spec.name}")
    _check_checkpoint(store, policy, checkpoint)
    folder = fetch(checkpoint, cache_dir)

    def planned(kind: Literal["as ever", "perturbed"], limits: Limits) -> Plan:
        repeat = 1 + int(digest_parts([night, kind]), 16) % _REPEATS
        return plan(
            store,
            checkpoint=checkpoint,
            checkpoint_dir=folder,
            suite=policy.suite,
            environment=spec,
            limits=limits,
            engine=spec.engine_config(),
            repeat=repeat,
            perturbation=night if kind == "perturbed" else "",
            now=now,
        )

    base = planned("as ever", config.limits)
    perturbed = planned("perturbed", _one_more_shard(base, config.limits))
    return PlannedNight(
        night=night,
        environment=spec.name,
        run_id=base.run_id,
        plan_uri=plan_uri(store, base),
        perturbed_run_id=perturbed.run_id,
        perturbed_plan_uri=plan_uri(store, perturbed),
    )


def _one_more_shard(base: Plan, limits: Limits) -> Limits:
    """Limits by which each kind of work is cut into about one shard more."""
    costs = {shard.group: [s.cost_tokens for s in base.shards if s.group == shard.group] for shard in base.shards}
    cost = min(max(1, sum(c) // (len(c) + 1)) for c in costs.values())
    most = min(limits.max_shards, len(base.shards) + len(costs))
    return limits.model_copy(update={"shard_cost_tokens": cost, "max_shards": max(most, len(costs))})


def _check_checkpoint(store: Store, policy: DeterminismPolicy, checkpoint: Checkpoint) -> None:
    """The fixed checkpoint is fixed: one flipped bit of it, or another tokenizer, is another checkpoint."""
    name, _, version = policy.suite.partition("@")
    suite = store.catalog.suite(name, version or None)
    known = [b.checkpoint_id for b in store.catalog.baselines(suite.suite_id, "adopted")]
    wanted = policy.checkpoint_id or (known[0] if known else checkpoint.checkpoint_id)
    if checkpoint.checkpoint_id != wanted:
        raise DriftError(
            f"the fixed checkpoint {policy.checkpoint} is {checkpoint.checkpoint_id[:12]}, and it was {wanted[:12]}: "
            "its files changed; restore them, or name the new one as determinism.checkpoint_id in the configuration"
        )
