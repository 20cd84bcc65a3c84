"""Two runs that were compared -> their difference in ability by frozen item-response weights. No test looks at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval_tasks.abilities import Weights, ability_apart
from eval_tasks.compare.compared import Compared
from eval_tasks.compare.pairing import pair_with_ids
from eval_tasks.records import AbilityDifference

if TYPE_CHECKING:
    from eval_tasks.store import Store


def abilities_of(store: Store, compared: Compared) -> tuple[AbilityDifference, ...]:
    """Of the benchmarks that were compared as they are in both runs and that somebody calibrated; one run an arm."""
    (a,), (b,), versions = compared.a, compared.b, compared.versions
    weights = Weights.standing(store, {versions[arm.benchmark][0].benchmark_id for arm in compared.arms})
    found = []
    for arm in compared.arms:
        key = (versions[arm.benchmark][0].benchmark_id, arm.metric, arm.grader)
        if arm.not_tested or arm.compatibility != "SCORE" or not arm.info.binary or not weights.know(*key):
            continue
        ids, pairs = pair_with_ids(arm)
        difference = ability_apart(weights, (a, b), arm.benchmark, key, ids, (pairs.a, pairs.b), pairs.clusters)
        if difference is not None:
            found.append(difference)
    return tuple(found)
