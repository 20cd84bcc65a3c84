"""Seed studies and reruns in the catalog."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eval_tasks.errors import UserError
from eval_tasks.records import RerunComparison, RerunDifference, Scale, SeedStudy, StudiedBenchmark
from eval_tasks.store import Store
from eval_tasks.store.catalog import part
from eval_tasks.store.catalog.part import encode
from eval_tasks.store.database import insert_of
from tests.store.samples import NOW

LATER = "2026-03-01T00:00:00+00:00"


def study(**changes: Any) -> SeedStudy:
    studied = StudiedBenchmark(benchmark="colours", metric="acc", n=1_000, n_seeds=5, s2_raw=4e-5, psi_seed=0.05)
    fields: dict[str, Any] = {
        "name": "tiny-seeds",
        "origin": "imported",
        "source": "table 3",
        "scale": Scale(parameters=1_200_000_000, tokens=300_000_000_000),
        "benchmarks": (studied,),
        "measured_at": "2026-01-15",
        "recorded_at": NOW,
    }
    return SeedStudy(**{**fields, **changes})


def rerun(env_a: str = "e1", env_b: str = "e2", **changes: Any) -> RerunComparison:
    difference = RerunDifference(benchmark="colours", metric="acc", n=1_000, delta=0.002, se_flip=0.001)
    fields: dict[str, Any] = {"env_a": env_a, "env_b": env_b, "measured_at": NOW, "differences": (difference,)}
    return RerunComparison(**{**fields, **changes})


def test_a_study_is_kept_and_found_by_name_and_version(store: Store) -> None:
    first = store.catalog.save_seed_study(study())
    assert first == study() and first.reference == "tiny-seeds@1"
    assert store.catalog.save_seed_study(study(recorded_at=LATER)) == first
    second = store.catalog.save_seed_study(study(source="table 4", recorded_at=LATER))
    assert (second.version, second.recorded_at) == (2, LATER)
    assert store.catalog.seed_study("tiny-seeds") == second
    assert store.catalog.seed_study("tiny-seeds", 1) == first
    assert store.catalog.seed_studies() == [first, second]
    with pytest.raises(UserError, match=r"no seed study 'tiny-seds'.*close: 'tiny-seeds'"):
        store.catalog.seed_study("tiny-seds")
    with pytest.raises(UserError, match=r"no version of seed study 'tiny-seeds' '3'"):
        store.catalog.seed_study("tiny-seeds", 3)


def test_of_two_processes_that_record_at_once_each_gets_a_version(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [study(source="another process")]

    def insert_second(connection: Any, table: Any) -> Any:
        if others:
            other = others.pop()
            row = {"name": other.name, "version": 1, "study_id": other.study_id, "record": encode(other)}
            connection.execute(insert_of(connection, table).values(row))
        return insert_of(connection, table)

    monkeypatch.setattr(part, "insert_of", insert_second)
    assert store.catalog.save_seed_study(study()).version == 2
    assert [s.source for s in store.catalog.seed_studies()] == ["another process", "table 3"]


def test_flips_are_half_the_discordance_over_the_items_unless_they_were_measured() -> None:
    (studied,) = study().benchmarks
    assert studied.flip_variance == pytest.approx(2.5e-5)
    assert replace(studied, flips=3e-5).flip_variance == 3e-5


def test_reruns_are_found_by_their_environments_in_either_order(store: Store) -> None:
    between, within, back = rerun(), rerun("e1", "e1"), rerun("e2", "e1", measured_at=LATER)
    for one in (back, between, within, between):
        store.catalog.save_rerun(one)
    assert (between.kind, within.kind) == ("environment", "engine")
    assert store.catalog.reruns(("e2", "e1")) == [between, back]
    assert store.catalog.reruns(("e1", "e1")) == [within]
    assert store.catalog.reruns(("e1", "e3")) == []
    assert len(store.catalog.reruns()) == 3
