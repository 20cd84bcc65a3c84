"""Blocks: one for each cause, lifted once, by name and with a reason; what they put in doubt; who waits."""

from __future__ import annotations

import pytest

from eval_tasks.errors import UserError
from eval_tasks.records import PlannedShard
from eval_tasks.store import Store
from tests.store.samples import NOW, run

EARLY, LATE, LATER = (f"2026-02-0{day}T00:00:00+00:00" for day in (1, 2, 3))


def test_a_block_holds_its_environment_until_it_is_explained(store: Store) -> None:
    block = store.catalog.open_block("f", "3 rows differ", NOW)
    assert store.catalog.open_block("f", "3 rows differ", "2026-02-01T00:00:00+00:00") == block
    other = store.catalog.open_block("g", "3 rows differ", NOW)
    assert [b.block_id for b in store.catalog.open_blocks()] == [block, other]
    assert [b.block_id for b in store.catalog.open_blocks("f")] == [block]
    with pytest.raises(UserError, match="a name and a reason"):
        store.catalog.explain_block(block, "ann", " ", NOW)
    lifted = store.catalog.explain_block(block, "ann", "driver update", NOW)
    assert (lifted.explained_by, lifted.explanation) == ("ann", "driver update")
    assert store.catalog.open_blocks("f") == []
    assert store.catalog.blocks("f") == [lifted]
    with pytest.raises(UserError, match="was explained by 'ann'"):
        store.catalog.explain_block(block, "bob", "no", NOW)
    with pytest.raises(UserError, match="no block 'x'"):
        store.catalog.explain_block("x", "bob", "no", NOW)
    assert store.catalog.block(block[:8]) == lifted
    assert store.catalog.open_block("f", "3 rows differ", "2026-02-01T00:00:00+00:00") != block


def test_a_block_that_was_explained_opens_anew_even_at_the_same_time(store: Store) -> None:
    block = store.catalog.open_block("f", "3 rows differ", NOW)
    store.catalog.explain_block(block, "ann", "driver update", NOW)
    again = store.catalog.open_block("f", "3 rows differ", NOW)
    assert [b.block_id for b in store.catalog.open_blocks("f")] == [again]
    assert len(store.catalog.blocks("f")) == 2


def test_the_same_change_seen_by_another_night_is_the_same_block(store: Store) -> None:
    block = store.catalog.open_block("f", "3 rows differ", NOW, suite_id="s")
    assert store.catalog.open_block("f", "4 rows differ", EARLY, suite_id="s") == block
    assert store.catalog.open_block("f", "4 rows differ", EARLY, suite_id="t") != block
    assert store.catalog.open_block("f", "3 rows differ", EARLY, kind="sentinels", suite_id="s") != block


def test_only_rows_can_be_adopted(store: Store) -> None:
    block = store.catalog.open_block("f", "x", NOW, kind="computed_twice", nodes=("n1", "n2"))
    with pytest.raises(UserError, match="no other rows to adopt"):
        store.catalog.explain_block(block, "ann", "x", NOW, "baseline adopted")
    assert store.catalog.open_blocks("f")[0].nodes == ("n1", "n2")


def closed(store: Store, number: int, closed_at: str, fingerprint: str = "f") -> str:
    stored = store.catalog.create_run(run(number, status="closed", closed_at=closed_at, env_fingerprint=fingerprint))
    shard = PlannedShard(shard=0, group="logprob", n_batches=1, n_items=1, cost_tokens=1)
    store.catalog.save_shards(stored.run_id, [shard])
    store.catalog.record_shard(stored.run_id, 0, status="done", env_fingerprint=fingerprint)
    return stored.run_id


def suspects(store: Store, block: str) -> list[str]:
    return [r.run_id for r in store.catalog.suspects(store.catalog.block(block))]


def test_what_ran_since_the_last_good_night_is_suspect_until_it_is_cleared(store: Store) -> None:
    before, since = closed(store, 1, "2026-01-31T12:00:00+00:00"), closed(store, 2, "2026-01-31T12:00:01+00:00")
    elsewhere = closed(store, 3, EARLY, "g")
    block = store.catalog.open_block("f", "rows differ", EARLY, good_until="2026-01-31T12:00:00.000000+00:00")
    passed_the_gate_before = closed(store, 4, LATE)
    assert suspects(store, block) == [since, passed_the_gate_before]
    for run_id in (before, elsewhere):
        assert store.catalog.suspicions(store.catalog.run(run_id)) == []
    store.catalog.explain_block(block, "ann", "a bad DIMM", LATE, "runs suspect")
    after = closed(store, 5, LATER)
    assert suspects(store, block) == [since, passed_the_gate_before]
    assert store.catalog.suspicions(store.catalog.run(after)) == []
    with pytest.raises(UserError, match="a name and a reason"):
        store.catalog.clear_runs(block, [since], "ann", "", LATER)
    store.catalog.clear_runs(block, [since], "ann", "repeated elsewhere: the same rows", LATER)
    assert suspects(store, block) == [passed_the_gate_before]
    assert store.catalog.block(block).cleared[0].by == "ann"


@pytest.mark.parametrize("outcome", ["baseline kept", "baseline adopted"])
def test_a_block_that_is_explained_otherwise_leaves_no_doubt(store: Store, outcome: str) -> None:
    closed(store, 1, NOW)
    block = store.catalog.open_block("f", "rows differ", EARLY)
    assert len(suspects(store, block)) == 1
    store.catalog.explain_block(block, "ann", "x", LATE, outcome)  # type: ignore[arg-type]
    assert suspects(store, block) == []


def test_tickets_stand_in_the_order_of_their_places(store: Store) -> None:
    for second, (ticket, place) in enumerate((("x", "2"), ("y", "1"), ("z", "2"))):
        store.catalog.hold_ticket(ticket, "local", place, float(second))
    store.catalog.hold_ticket("x", "local", "2", 9.0)
    assert store.catalog.tickets("local") == [("1", "y", 1.0), ("2", "x", 9.0), ("2", "z", 2.0)]
    store.catalog.return_ticket("x")
    assert [t for _, t, _ in store.catalog.tickets("local")] == ["y", "z"]
    assert store.catalog.tickets("gpu") == []
