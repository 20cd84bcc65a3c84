"""Small records of each kind, alike but for what a test changes."""

from __future__ import annotations

from typing import Any

from eval_tasks.records import (
    BenchmarkVersion,
    Checkpoint,
    CheckpointFile,
    DataSource,
    EngineConfig,
    PlannedBatch,
    PromptTemplate,
    Response,
    Run,
    RunRequest,
    Sample,
    Score,
    ScorerRef,
)

BENCHMARK_ID = "b" * 32
NOW = "2026-01-31T12:00:00+00:00"


def checkpoint(**changes: Any) -> Checkpoint:
    files = (CheckpointFile(path="model.safetensors", size=10, blake3="0" * 64),)
    fields = {
        "checkpoint_id": Checkpoint.digest_of(files),
        "training_run": "tiny",
        "step": 100,
        "uri": "s3://bucket/tiny/step-100",
        "files": files,
        "corpora": ("web",),
    }
    return Checkpoint(**{**fields, **changes})


def benchmark(**changes: Any) -> BenchmarkVersion:
    fields: dict[str, Any] = {
        "name": "colours",
        "version": "1",
        "kind": "choice",
        "items_digest": "i" * 64,
        "template_digest": "t" * 64,
        "scorer_digest": "s" * 64,
        "n_items": 3,
        "items_blob": "e" * 64,
        "few_shot_blob": None,
        "template": PromptTemplate(item="{{ question }}", choices=("A", "B")),
        "few_shot": None,
        "scorer": ScorerRef(name="choice", version="1", parameters={"normalise": True}),
        "primary_metric": "acc",
        "licence": "CC0-1.0",
        "source": DataSource(uri="colours.jsonl", blake3="d" * 64, format="jsonl"),
        "created_at": NOW,
        "plausible_range": {"acc": (0.2, 0.9)},
    }
    return BenchmarkVersion(**{**fields, **changes})


def run(number: int = 0, **changes: Any) -> Run:
    request = RunRequest(
        checkpoint_id="c" * 64,
        suite="health",
        suite_version="1",
        suite_id="5" * 32,
        benchmark_ids=(BENCHMARK_ID,),
        engine=EngineConfig(),
        harness_version="0.1.0+test",
    )
    fields: dict[str, Any] = {
        "run_id": f"{number:032x}",
        "request": request,
        "environment": "local",
        "tier": "health",
        "training_run": "tiny",
        "step": 100,
        "created_at": NOW,
    }
    return Run(**{**fields, **changes})


def response(item_id: str, **changes: Any) -> Response:
    fields: dict[str, Any] = {
        "benchmark_id": BENCHMARK_ID,
        "item_id": item_id,
        "status": "ok",
        "prompt_digest": "p" * 64,
        "logprobs": (-1.25, -0.5),
        "token_logprobs": ((-1.0, -0.25), (-0.5,)),
        "n_prompt_tokens": 7,
    }
    return Response(**{**fields, **changes})


def sample(**changes: Any) -> Sample:
    fields: dict[str, Any] = {
        "output": "x",
        "output_ids": (4, 1),
        "finish_reason": "eos",
        "token_logprobs": (-0.5, -0.25),
    }
    return Sample(**{**fields, **changes})


def score(item_id: str, **changes: Any) -> Score:
    fields: dict[str, Any] = {"benchmark_id": BENCHMARK_ID, "item_id": item_id, "metric": "acc", "value": 1.0}
    return Score(**{**fields, **changes})


def batch(number: int, *item_ids: str, shard: int = 0, benchmark_id: str = BENCHMARK_ID) -> PlannedBatch:
    return PlannedBatch(batch=number, shard=shard, benchmark_id=benchmark_id, item_ids=item_ids, cost_tokens=64)
