"""What one process gives, without Airflow, pods or faults: what a disturbed installation is held against."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from eval_tasks.aggregate import aggregate
from eval_tasks.grade import grade
from eval_tasks.plan import plan, plan_uri
from eval_tasks.records import EngineConfig
from eval_tasks.resolve import resolve
from eval_tasks.run import run_shard
from eval_tasks.settings import EnvironmentSpec, Limits, Settings
from eval_tasks.store import Store, open_store
from tests.planned import NOW, register

Number = tuple[str, str, float | None, int, float | None, tuple[float, float] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run came to. `rows`: digest of all its rows; `numbers`: its measurements, sorted."""

    rows: str
    numbers: tuple[Number, ...]

    @classmethod
    def of(cls, store: Store, run_id: str) -> Outcome:
        """The outcome of a graded and aggregated run."""
        numbers = [(m.benchmark, m.metric, m.score, m.n, m.se, m.ci95) for m in store.catalog.measurements(run_id)]
        return cls(rows=store.responses.run_rows_digest(run_id), numbers=tuple(sorted(numbers)))


def undisturbed(checkpoint: Path, home: Path, *, max_tokens: int = 150) -> Outcome:
    """The outcome in one process, without Airflow, pods or faults."""
    with open_store(Settings(home=home)) as store:
        register(store, home / "benchmarks", max_tokens=max_tokens)
        resolved = resolve(store, checkpoint_uri=str(checkpoint), training_run="alone", step=1)
        made = plan(
            store,
            checkpoint=resolved,
            checkpoint_dir=checkpoint,
            suite="colours-all",
            environment=EnvironmentSpec(name="local"),
            limits=Limits(),
            engine=EngineConfig(prefix="shared"),
            now=NOW,
        )
        uri = plan_uri(store, made)
        for shard in made.shards:
            run_shard(store, plan_uri=uri, shard=shard.shard, owner="alone", cache_dir=home / "cache")
        grade(store, run_id=made.run_id)
        aggregate(store, made.run_id)
        return Outcome.of(store, made.run_id)
