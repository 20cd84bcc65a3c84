"""Environments, baselines and blocks."""

from __future__ import annotations

import pytest

from eval_tasks.errors import UserError
from eval_tasks.records import Environment
from eval_tasks.store import Baseline, Store
from tests.store.samples import NOW

CPU = Environment(components={"torch": "2.13.0", "cpu": "avx512"})
GPU = Environment(components={"torch": "2.13.0", "gpu": "H200"})


def test_environments_come_back(store: Store) -> None:
    assert store.catalog.save_environment(CPU) == CPU.env_fingerprint
    store.catalog.save_environment(GPU)
    store.catalog.save_environment(CPU)
    assert store.catalog.environments() == [CPU, GPU]
    assert store.catalog.environment(GPU.env_fingerprint) == GPU
    with pytest.raises(UserError, match="no environment 'x'"):
        store.catalog.environment("x")


def test_one_baseline_per_environment_and_suite(store: Store) -> None:
    assert store.catalog.baseline("f", "s") is None
    first = Baseline(env_fingerprint="f", suite_id="s", run_id="r1", status="candidate", recorded_at=NOW)
    store.catalog.save_baseline(first)
    adopted = Baseline(
        env_fingerprint="f", suite_id="s", run_id="r1", status="adopted", recorded_at=NOW, rows_digest="d", effect="0.0"
    )
    store.catalog.save_baseline(adopted)
    later = Baseline(env_fingerprint="g", suite_id="s", run_id="r2", status="candidate", recorded_at="2027-01-01")
    store.catalog.save_baseline(later)
    assert store.catalog.baseline("f", "s") == adopted
    assert store.catalog.baselines("s") == [later, adopted]
    assert store.catalog.baselines("s", "adopted") == [adopted]
    assert store.catalog.baselines("t") == []


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
    assert store.catalog.open_block("f", "3 rows differ", "2026-02-01T00:00:00+00:00") != block


def test_a_block_that_was_explained_opens_anew_even_at_the_same_time(store: Store) -> None:
    block = store.catalog.open_block("f", "3 rows differ", NOW)
    store.catalog.explain_block(block, "ann", "driver update", NOW)
    again = store.catalog.open_block("f", "3 rows differ", NOW)
    assert [b.block_id for b in store.catalog.open_blocks("f")] == [again]
    assert len(store.catalog.blocks("f")) == 2
