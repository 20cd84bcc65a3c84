"""The engine's promises, tried on about 200 sentinels in the pod of an environment, and kept beside the night's run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from eval_tasks.checkpoint import fetch
from eval_tasks.environment import describe_environment
from eval_tasks.records import SentinelCheck, SentinelReport

if TYPE_CHECKING:
    from eval_tasks.store import Store


def try_sentinels(store: Store, *, run_id: str, cache_dir: Path, node: str = "") -> SentinelReport:
    """Try them for the run's checkpoint and engine, here, and keep what they said; a broken promise is no error.

    A mock engine runs no model: it has none to break.
    """
    run = store.catalog.run(run_id)
    config = run.request.engine_config
    checks: tuple[SentinelCheck, ...] = ()
    if not config.is_mock:
        from eval_tasks.engine import verify_engine

        checkpoint = replace(store.catalog.checkpoint(run.request.checkpoint_id), uri=run.checkpoint_uri)
        checks = tuple(
            SentinelCheck(name=c.name, passed=c.passed, n_items=c.n_items, differing=c.differing, seconds=c.seconds)
            for c in verify_engine(fetch(checkpoint, cache_dir), config)
        )
    report = SentinelReport(
        run_id=run.run_id,
        env_fingerprint=describe_environment(config).env_fingerprint,
        node=node,
        checks=checks,
    )
    store.catalog.save_sentinels(report)
    return report
