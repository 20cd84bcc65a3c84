"""A plan -> what it will cost at most; a closed run -> what it did cost. Knows no budget.

Device-seconds are forecast from how long earlier runs of the same tier in the same environment took per planned token,
so that whatever makes outputs shorter than they may be is in it; before the first one, from the environment's declared
speed.
"""

from __future__ import annotations

import pyarrow.compute as pc

from eval_tasks.records import Cost, CostEntry, Plan
from eval_tasks.settings import Config, EnvironmentSpec
from eval_tasks.store import Store

_RECENT = 20
_SECONDS_PER_HOUR = 3600.0


def forecast(store: Store, plan: Plan, tier: str, spec: EnvironmentSpec) -> Cost:
    """The most that a plan will cost in its environment. Seconds and money are None while nothing tells the speed.

    What earlier runs took has their loading in it; with a declared speed each pod's `load_seconds` come on top.
    """
    tokens = sum(shard.cost_tokens for shard in plan.shards)
    seconds = None
    if measured := _measured_speed(store, tier, spec.name):
        seconds = tokens / measured
    elif spec.tokens_per_second is not None:
        seconds = tokens / spec.tokens_per_second + len(plan.shards) * spec.load_seconds * devices(spec)
    return Cost(items=plan.n_items, tokens=tokens, device_seconds=seconds, usd=_usd(seconds, spec))


def account(store: Store, run_id: str, config: Config) -> CostEntry | None:
    """Record what a closed run has cost so far: a pod that failed has cost too. None for a run without a forecast.

    An environment that is configured no more has no price.
    A pod that was killed could not say how long it took, so that device-seconds are a lower bound then.
    """
    run = store.catalog.run(run_id)
    known = (spec for spec in config.environments if spec.name == run.environment)
    spec = next(known, EnvironmentSpec(name=run.environment))
    items = tokens = 0
    for benchmark_id in store.responses.benchmarks(run.run_id):
        table = store.responses.read(run.run_id, benchmark_id, columns=["n_prompt_tokens", "n_output_tokens"])
        items += table.num_rows
        tokens += sum(pc.sum(table[name]).as_py() or 0 for name in ("n_prompt_tokens", "n_output_tokens"))
    seconds = sum(row.total_seconds for row in store.catalog.shards(run.run_id)) * devices(spec)
    actual = Cost(items=items, tokens=tokens, device_seconds=seconds, usd=_usd(seconds, spec))
    return store.catalog.save_cost(run.run_id, actual)


def devices(spec: EnvironmentSpec) -> int:
    """How many devices a pod of the environment holds while it runs: its GPUs, or the one machine."""
    return max(1, spec.gpus)


def _usd(seconds: float | None, spec: EnvironmentSpec) -> float | None:
    price = spec.usd_per_device_hour
    return None if seconds is None or price is None else seconds * price / _SECONDS_PER_HOUR


def _measured_speed(store: Store, tier: str, environment: str) -> float | None:
    """Planned tokens per device-second over the last runs."""
    known = [
        (entry.forecast.tokens, entry.actual.device_seconds)
        for entry in store.catalog.costs(tier=tier, environment=environment, limit=4 * _RECENT)
        if entry.actual is not None and entry.actual.device_seconds
    ][:_RECENT]
    seconds = sum(taken for _, taken in known)
    return sum(tokens for tokens, _ in known) / seconds if seconds else None
