"""Corpora of two arms -> the items that one of them alone may have seen. Reads recorded checks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from eval_tasks.contamination import known_statuses
from eval_tasks.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """Items found in corpora of `arm` that the other arm was not trained on, and not in any of the other arm's."""

    arm: Literal["A", "B"]
    item_ids: frozenset[str]
    corpora: tuple[str, ...]


def one_sided(
    store: Store, benchmark_id: str, corpora_a: Collection[str], corpora_b: Collection[str]
) -> Exposure | None:
    """What only one arm may have seen of a benchmark; None where neither, or each, has corpora of its own.

    An arm that names no corpora is not known to have seen nothing, so that there is no answer then; nor where a corpus
    of either was not checked.
    """
    only_a, only_b = set(corpora_a) - set(corpora_b), set(corpora_b) - set(corpora_a)
    if not corpora_a or not corpora_b or bool(only_a) == bool(only_b):
        return None
    arm: Literal["A", "B"] = "A" if only_a else "B"
    own, others = sorted(only_a or only_b), sorted(corpora_b if only_a else corpora_a)
    in_own, in_others = known_statuses(store, benchmark_id, own)[0], known_statuses(store, benchmark_id, others)[0]
    if in_own is None or in_others is None:
        return None
    found = {item_id for item_id, status in in_own.items() if status == "contaminated"}
    seen_by_both = {item_id for item_id, status in in_others.items() if status == "contaminated"}
    return Exposure(arm=arm, item_ids=frozenset(found - seen_by_both), corpora=tuple(own))
