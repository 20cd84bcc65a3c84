"""Environments, baselines and blocks."""

from __future__ import annotations

import pytest

from eval_tasks.errors import UserError
from eval_tasks.records import Baseline, Environment
from eval_tasks.store import Store
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


def test_an_environment_is_found_by_fingerprint_by_its_beginning_and_by_a_name_it_was_seen_under(store: Store) -> None:
    for environment in (CPU, GPU):
        store.catalog.save_environment(environment)
    store.catalog.see_environment("node", CPU.env_fingerprint, 1.0)
    store.catalog.see_environment("node", GPU.env_fingerprint, 2.0)
    assert store.catalog.fingerprints_of("node") == [GPU.env_fingerprint, CPU.env_fingerprint]
    store.catalog.see_environment("node", CPU.env_fingerprint, 3.0)
    assert store.catalog.fingerprints_of("node") == [CPU.env_fingerprint, GPU.env_fingerprint]
    assert store.catalog.names_of(GPU.env_fingerprint) == ["node"]
    assert store.catalog.find_environment("node") == CPU
    assert store.catalog.find_environment(GPU.env_fingerprint[:6]) == GPU
    for nothing in ("", "zz"):
        with pytest.raises(UserError, match="no environment"):
            store.catalog.find_environment(nothing)
