"""A run whose rows are written by hand: no engine, so that each test says what the outputs were."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.aggregate import aggregate
from eval_tasks.grade import grade
from eval_tasks.records import Plan, Response
from eval_tasks.store import Store
from tests.planned import planned, register, write_checkpoint

OWNER = "by-hand"
Answer = Callable[[str, int], dict[str, Any]]


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint") / "step-1")


def sound(name: str, n: int) -> dict[str, Any]:
    """Fields of a plausible response to the n-th item of a benchmark."""
    if name == "colours":
        logprobs = tuple(-1.0 if k == (n // 2) % 4 else -2.0 - k / 10 for k in range(4))
        return {"logprobs": logprobs, "token_logprobs": tuple((value,) for value in logprobs)}
    if name == "colour-text":
        return {"logprobs": (-12.5,), "token_logprobs": ((-6.25, -6.25),), "n_bytes": 10}
    return {"output": f" The answer is {n}.", "finish_reason": "stop"}


def answer_by_hand(store: Store, plan: Plan, answer: Answer = lambda _name, _n: {}) -> None:
    """Do the work of every shard of a plan without an engine."""
    names = {i: store.catalog.benchmark_by_id(i).name for i in plan.request.benchmark_ids}
    for batch in store.blobs.get_batches(plan.batches_blob):
        name = names[batch.benchmark_id]
        rows = []
        for item_id in batch.item_ids:
            n = int(item_id[1:])
            fields = {"status": "ok", "prompt_digest": "0" * 64, **sound(name, n), **answer(name, n)}
            rows.append(Response(benchmark_id=batch.benchmark_id, item_id=item_id, **fields))
        assert store.queue.try_claim(plan.run_id, batch.batch, OWNER, 60, datetime.now(UTC))
        result_id = store.responses.write_batch(plan.run_id, batch.shard, batch.batch, rows)
        assert store.queue.try_complete(plan.run_id, batch.batch, OWNER, result_id)


@pytest.fixture
def answered(store: Store, checkpoint: Path, tmp_path: Path) -> Callable[..., str]:
    """`answered(answer, **changes of the choice benchmark) -> run_id`: planned, answered by hand, graded, aggregated.

    `answer(benchmark name, n)` gives fields that replace those of `sound`.
    """

    def build(answer: Answer = lambda _name, _n: {}, repeat: int = 0, **changes: Any) -> str:
        register(store, tmp_path / "benchmarks", **changes)
        plan = planned(store, checkpoint, repeat=repeat)
        answer_by_hand(store, plan, answer)
        grade(store, run_id=plan.run_id)
        aggregate(store, plan.run_id)
        return plan.run_id

    return build


def right(share: float) -> Answer:
    """Answers that choose the gold choice in about `share` of the choice items, and no letter always."""

    def answer(name: str, n: int) -> dict[str, Any]:
        if name != "colours":
            return {}
        chosen = n % 4 if (n * 37) % 100 < 100 * share else (n + 1 + n // 4 % 3) % 4
        logprobs = tuple(-1.0 if k == chosen else -2.0 - k / 10 for k in range(4))
        return {"logprobs": logprobs, "token_logprobs": tuple((value,) for value in logprobs)}

    return answer
