"""Claims and completions: one winner, whoever dies."""

from __future__ import annotations

from eval_tasks.store import Store
from tests.store.samples import batch


def test_a_claimed_batch_is_held_until_its_lease_ends(store: Store) -> None:
    assert store.queue.enqueue("run", [batch(0, "a", "b")]) == 2
    assert store.queue.try_claim("run", 0, "pod-1", 60, 1000.0)
    assert not store.queue.try_claim("run", 0, "pod-2", 60, 1059.9)
    assert store.queue.try_claim("run", 0, "pod-2", 60, 1060.0)
