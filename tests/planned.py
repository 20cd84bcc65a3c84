"""A small evaluation that is ready to run: a tiny checkpoint, three benchmarks of every kind, a suite and a plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from eval_tasks.digests import digest_bytes
from eval_tasks.plan import plan, plan_uri
from eval_tasks.records import EngineConfig, Plan
from eval_tasks.register import register_benchmark, register_suite
from eval_tasks.resolve import resolve
from eval_tasks.settings import EnvironmentSpec, Limits
from eval_tasks.store import Store
from tests.parity.tiny_model import SEED, write_model

NOW = "2026-01-01T00:00:00+00:00"
N_CHOICE, N_TEXT, N_GENERATED = 70, 40, 36
WORDS = ["red", "blue", "green", "gold", "grey", "pink", "teal", "plum", "rust", "sand"]


def write_checkpoint(folder: Path, seed: int = SEED) -> Path:
    """A random-weight Llama with a byte tokenizer; another `seed` is another checkpoint."""
    return write_model(folder, seed)


def write_suite(folder: Path, *, max_tokens: int = 6, **changes: Any) -> Path:
    """Benchmark files `colours` (choice), `colour-text` (loss), `colour-sums` (generation) and the suite `colours-all`.

    `max_tokens` is the length of the generated outputs; `changes` replaces fields of the choice benchmark's file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    choices = [
        {
            "item_id": f"c{n:03d}",
            "question": f"Which of these is number {n}?",
            "choices": [WORDS[(n + k) % len(WORDS)] for k in range(4)],
            "answer": n % 4,
            "subject": "even" if n % 2 == 0 else "odd",
        }
        for n in range(N_CHOICE)
    ]
    texts = [{"item_id": f"t{n:03d}", "text": " ".join(WORDS[: 2 + n % 8]) + f" {n}."} for n in range(N_TEXT)]
    sums = [
        {"item_id": f"g{n:03d}", "question": f"{n} and {n + 1}", "answer": f"#### {2 * n + 1}"}
        for n in range(N_GENERATED)
    ]
    _benchmark(
        folder,
        choices,
        {
            "name": "colours",
            "kind": "choice",
            "item": {"id": "item_id", "target": "answer", "stratum": "subject"},
            "prompt": {"item": "{{ question }}\nAnswer:", "choices": "choices"},
            "scorer": {"name": "choice"},
            "primary_metric": "acc",
            **changes,
        },
    )
    _benchmark(
        folder,
        texts,
        {
            "name": "colour-text",
            "kind": "loss",
            "item": {"id": "item_id", "target": None},
            "prompt": {"item": "{{ text }}"},
            "scorer": {"name": "loss"},
            "primary_metric": "bits_per_byte",
        },
    )
    _benchmark(
        folder,
        sums,
        {
            "name": "colour-sums",
            "kind": "generation",
            "item": {"id": "item_id", "target": "answer"},
            "prompt": {"item": "Q: {{ question }}\nA:", "stop": ["\n\n"]},
            "scorer": {"name": "gsm8k"},
            "primary_metric": "strict",
            "max_tokens": max_tokens,
        },
    )
    names = ("colours", "colour-text", "colour-sums")
    suite = {"name": "colours-all", "version": "1", "tier": "selection", "benchmarks": [{"name": n} for n in names]}
    path = folder / "colours-all.yaml"
    path.write_text(yaml.safe_dump(suite), "utf-8")
    return path


def register(store: Store, folder: Path, **changes: Any) -> None:
    """Write and register the three benchmarks and their suite."""
    suite = write_suite(folder, **changes)
    for name in ("colours", "colour-text", "colour-sums"):
        register_benchmark(store, folder / f"{name}.yaml", NOW)
    register_suite(store, suite)


def planned(store: Store, checkpoint: Path, *, shard_cost_tokens: int = 3_000, repeat: int = 0, step: int = 1) -> Plan:
    """Resolve the checkpoint and plan the suite on it, in several shards."""
    resolved = resolve(store, checkpoint_uri=str(checkpoint), training_run="tiny", step=step)
    return plan(
        store,
        checkpoint=resolved,
        checkpoint_dir=checkpoint,
        suite="colours-all",
        environment=EnvironmentSpec(name="local"),
        limits=Limits(shard_cost_tokens=shard_cost_tokens),
        engine=EngineConfig(prefix="shared"),
        repeat=repeat,
        now=NOW,
    )


def uri_of(store: Store, made: Plan) -> str:
    """The URI a pod is given."""
    return plan_uri(store, made)


def _benchmark(folder: Path, rows: list[dict[str, Any]], document: dict[str, Any]) -> None:
    data = folder / f"{document['name']}.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    source = {"uri": data.name, "blake3": digest_bytes(data.read_bytes()), "format": "jsonl"}
    document = {"version": "1", "licence": "Apache-2.0", "source": source, **document}
    (folder / f"{document['name']}.yaml").write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
