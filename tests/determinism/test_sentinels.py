"""Sentinels beside a night's run: what the engine says is kept, and a mock has nothing to say."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_tasks import engine
from eval_tasks.determinism import try_sentinels
from eval_tasks.engine import Check
from eval_tasks.environment import describe_environment
from eval_tasks.records import EngineConfig
from eval_tasks.store import Store
from tests.planned import planned, register, write_checkpoint


def test_what_the_engine_says_is_kept(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [
        Check(name="again", passed=True, n_items=201),
        Check(name="alone", passed=False, n_items=9, differing=("x",)),
    ]
    asked: list[Path] = []
    monkeypatch.setattr(engine, "verify_engine", lambda folder, _: asked.append(folder) or checks)
    register(store, tmp_path / "benchmarks")
    checkpoint = write_checkpoint(tmp_path / "step-1")
    made = planned(store, checkpoint)
    report = try_sentinels(store, run_id=made.run_id, cache_dir=tmp_path / "cache", node="n1")
    assert asked == [checkpoint]
    assert [c.name for c in report.broken] == ["alone"]
    assert report.env_fingerprint == describe_environment(EngineConfig(prefix="shared")).env_fingerprint
    assert store.catalog.sentinels(made.run_id) == report
    assert store.catalog.sentinels("other") is None
