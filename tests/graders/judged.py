"""A judge's file and its checkpoint, and one call that judges to the end, for tests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from eval_tasks.graders import finish_grading, plan_grading, register_judge
from eval_tasks.plan import plan_uri
from eval_tasks.records import Plan, Response
from eval_tasks.run import run_shard
from eval_tasks.settings import EnvironmentSpec, Limits
from eval_tasks.store import Grader, Store
from tests.planned import NOW

PROMPT = "Question: {{ question }}\nReference: {{ target }}\nAnswer: {{ output }}\nIs the answer right?"
LOCAL = EnvironmentSpec(name="local")


def write_judge(folder: Path, checkpoint: Path | None, name: str = "helpful", **changes: Any) -> Path:
    """The YAML file of a judge by logprob; `changes` replaces fields, None takes one out."""
    document = {
        "name": name,
        "version": "1",
        "kind": "logprob",
        "checkpoint": str(checkpoint) if checkpoint else None,
        "prompt": {"item": PROMPT},
        "answers": {" Yes": 1, " No": 0},
        **changes,
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({k: v for k, v in document.items() if v is not None}, sort_keys=False), "utf-8")
    return path


def register(store: Store, path: Path) -> Grader:
    return register_judge(store, path, now=NOW, cache_dir=path.parent / "cache")


def plan_it(store: Store, run_id: str, grader: str, environment: EnvironmentSpec = LOCAL, **limits: Any) -> Plan | None:
    return plan_grading(
        store,
        run_id=run_id,
        benchmark_name="colour-sums",
        grader=grader,
        environment=environment,
        limits=Limits(**limits),
        cache_dir=Path("cache"),
        now=NOW,
    )


def run_it(store: Store, made: Plan) -> None:
    for shard in made.shards:
        run_shard(store, plan_uri=plan_uri(store, made), shard=shard.shard, owner="pod", cache_dir=Path("cache"))


def finish_it(store: Store, run_id: str, grader: str) -> str:
    return finish_grading(store, run_id=run_id, benchmark_name="colour-sums", grader=grader)


def answer_it(store: Store, made: Plan, give: Callable[[str], dict[str, Any]]) -> None:
    """Do a judge's work by hand: `give(item_id)` is the fields of its response."""
    for batch in store.blobs.get_batches(made.batches_blob):
        common = {"benchmark_id": batch.benchmark_id, "status": "ok", "prompt_digest": "0" * 64}
        rows = [Response(**{**common, "item_id": item_id, **give(item_id)}) for item_id in batch.item_ids]
        assert store.queue.try_claim(made.run_id, batch.batch, "hand", 60, datetime.now(UTC))
        result_id = store.responses.write_batch(made.run_id, batch.shard, batch.batch, rows)
        assert store.queue.try_complete(made.run_id, batch.batch, "hand", result_id)
