from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import yaml
from tokenizers import models, pre_tokenizers

from eval_tasks.digests import digest_bytes
from eval_tasks.errors import UserError
from eval_tasks.plan import plan, plan_uri
from eval_tasks.records import Checkpoint, EngineConfig, Plan, Suite
from eval_tasks.register import register_benchmark, register_suite
from eval_tasks.settings import EnvironmentSpec, Limits
from eval_tasks.store import Store

NOW = "2026-01-01T00:00:00+00:00"
CHECKPOINT = Checkpoint(checkpoint_id="c" * 64, training_run="run", step=7, uri="file:///step-7", files=())
ROWS = [
    {"item_id": f"i{n:03d}", "q": "x" * (n % 40), "options": ["a", "b"], "answer": n % 2, "s": "ab"[n % 2]}
    for n in range(100)
]

MakePlan = Callable[..., Plan]


@pytest.fixture
def checkpoint_dir(tmp_path: Path) -> Path:
    """A checkpoint's folder with a tokenizer of one token per byte, a context of 128 and no weights."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    vocab = {token: n for n, token in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    backend = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "max_position_embeddings": 128}))
    return folder


@pytest.fixture
def registered(store: Store, tmp_path: Path) -> Callable[..., Suite]:
    """Registers a choice and a generation benchmark over the same rows, and a suite of both."""

    def register(n_items: int | None = None, **changes: Any) -> Suite:
        data = "\n".join(json.dumps(row) for row in ROWS).encode()
        (tmp_path / "rows.jsonl").write_bytes(data)
        common = {
            "version": "1",
            "licence": "MIT",
            "source": {"uri": "rows.jsonl", "blake3": digest_bytes(data)},
            "item": {"id": "item_id", "target": "answer", "stratum": "s"},
        }
        choice = {
            "name": "pick",
            "kind": "choice",
            "prompt": {"item": "{{ q }}:", "choices": "options"},
            "scorer": {"name": "choice"},
            "primary_metric": "acc",
        }
        text = {
            "name": "write",
            "kind": "generation",
            "prompt": {"item": "{{ q }}:"},
            "scorer": {"name": "gsm8k"},
            "primary_metric": "strict",
            "max_tokens": 16,
        }
        for spec in (choice, text):
            path = tmp_path / f"{spec['name']}.yaml"
            path.write_text(yaml.safe_dump({**common, **spec, **changes}))
            register_benchmark(store, path, NOW)
        entries = [{"name": "pick", **({"n_items": n_items} if n_items else {})}, {"name": "write"}]
        suite = {"name": "both", "version": "1", "tier": "selection", "benchmarks": entries}
        (tmp_path / "suite.yaml").write_text(yaml.safe_dump(suite))
        return register_suite(store, tmp_path / "suite.yaml")

    return register


@pytest.fixture
def make_plan(store: Store, checkpoint_dir: Path) -> MakePlan:
    """Plans the suite; changes replace arguments."""

    def make(**changes: Any) -> Plan:
        checkpoint = changes.get("checkpoint", CHECKPOINT)
        store.catalog.save_checkpoint(checkpoint)
        arguments: dict[str, Any] = {
            "checkpoint": checkpoint,
            "checkpoint_dir": checkpoint_dir,
            "suite": "both",
            "environment": EnvironmentSpec(name="local"),
            "limits": Limits(shard_cost_tokens=1500),
            "engine": EngineConfig(),
            "now": NOW,
            **changes,
        }
        return plan(store, **arguments)

    return make


def test_batches_follow_item_ids_and_carry_the_tokenizers_costs(
    store: Store, registered: Callable[..., Suite], make_plan: MakePlan
) -> None:
    suite = registered()
    made = make_plan()
    batches = store.blobs.get_batches(made.batches_blob)
    pick, write = (entry.benchmark_id for entry in suite.entries)
    assert [(b.benchmark_id, len(b.item_ids)) for b in batches] == [
        *((pick, n) for n in (32, 32, 32, 4)),
        *((write, n) for n in (32, 32, 32, 4)),
    ]
    assert [i for b in batches[:4] for i in b.item_ids] == [row["item_id"] for row in ROWS]
    # a byte is a token: the prompt and its colon, then two choices of two bytes, or 16 tokens to write
    assert batches[0].cost_tokens == sum(n + 1 + 4 for n in range(32))
    assert batches[7].cost_tokens == sum(n % 40 + 1 + 16 for n in range(96, 100))
    assert (made.n_items, made.n_batches) == (200, 8)
    assert [s.group for s in made.shards] == sorted((s.group for s in made.shards), reverse=True)
    assert sum(s.n_items for s in made.shards) == 200
    assert all(s.cost_tokens for s in made.shards)
    # what each group asks of an engine at once: 32 prompts with two choices to read after each, or 32 to write after
    picked, written = ([s for s in made.shards if s.group == group] for group in ("logprob", "generation"))
    assert {(s.longest_prompt_tokens, s.longest_output_tokens, s.most_sequences) for s in picked} == {(40, 2, 96)}
    assert {(s.longest_output_tokens, s.most_sequences) for s in written} == {(16, 32)}
    assert max(s.longest_prompt_tokens for s in written) == 40


def test_the_run_its_queue_and_its_shards_are_recorded(
    store: Store, registered: Callable[..., Suite], make_plan: MakePlan
) -> None:
    registered()
    made = make_plan()
    run = store.catalog.run(made.run_id)
    assert (run.status, run.tier, run.training_run, run.step, run.created_at) == ("planned", "selection", "run", 7, NOW)
    assert run.request == made.request
    assert store.queue.counts(made.run_id)["pending"] == 200
    assert [row.shard for row in store.catalog.shards(made.run_id)] == [s.shard for s in made.shards]
    uri = plan_uri(store, made)
    assert store.plan(uri) == made
    assert uri.endswith(str(run.plan_blob)[2:])
    with pytest.raises(UserError, match="no plan"):
        store.plan(uri[:-4] + "0000")


def test_planning_again_is_the_same_plan(
    store: Store, registered: Callable[..., Suite], make_plan: MakePlan, tmp_path: Path
) -> None:
    suite = registered()
    made = make_plan()
    again = make_plan(
        suite=suite,
        checkpoint_dir=tmp_path / "gone",
        limits=Limits(shard_cost_tokens=9),
        now="2026-02-02T00:00:00+00:00",
    )
    assert again == made
    assert store.queue.counts(made.run_id)["pending"] == 200
    assert len(store.catalog.runs()) == 1
    moved = make_plan(checkpoint=replace(CHECKPOINT, uri="file:///copy"))
    assert moved == replace(made, checkpoint_uri="file:///copy")
    assert store.plan(str(store.catalog.run(made.run_id).plan_blob)).checkpoint_uri == "file:///copy"


def test_a_closed_run_stays_where_it_lay_when_it_ran(
    store: Store, registered: Callable[..., Suite], make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered()
    made = make_plan()
    monkeypatch.setattr(store.responses, "is_closed", lambda _run_id: True)
    assert make_plan(checkpoint=replace(CHECKPOINT, uri="file:///copy")) == made
    run = store.catalog.run(made.run_id)
    assert run.checkpoint_uri == made.checkpoint_uri == CHECKPOINT.uri
    assert store.plan(str(run.plan_blob)) == made


def test_another_seed_repeat_engine_or_environment_is_another_run(
    registered: Callable[..., Suite], make_plan: MakePlan
) -> None:
    registered()
    plans = [
        make_plan(),
        make_plan(seed=1),
        make_plan(repeat=1),
        make_plan(engine=EngineConfig(dtype="bfloat16")),
        make_plan(environment=EnvironmentSpec(name="gpu")),
    ]
    assert len({made.run_id for made in plans}) == len(plans)
    assert len({made.batches_blob for made in plans}) == 1


def test_a_plan_cut_short_is_completed(
    store: Store, registered: Callable[..., Suite], make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered()

    def lost(run_id: str, batches: object) -> int:
        raise ConnectionError("database is gone")

    with monkeypatch.context() as patched:
        patched.setattr(store.queue, "enqueue", lost)
        with pytest.raises(ConnectionError):
            make_plan()
    made = make_plan()
    assert store.queue.counts(made.run_id)["pending"] == 200
    assert len(store.catalog.shards(made.run_id)) == len(made.shards)


def test_a_subset_is_stratified(store: Store, registered: Callable[..., Suite], make_plan: MakePlan) -> None:
    suite = registered(n_items=10)
    batches = store.blobs.get_batches(make_plan().batches_blob)
    (ids,) = [b.item_ids for b in batches if b.benchmark_id == suite.entries[0].benchmark_id]
    assert sorted(int(i[1:]) % 2 for i in ids) == [0] * 5 + [1] * 5
    assert list(ids) == sorted(ids)


def test_long_prompts_are_noted_or_refused(store: Store, registered: Callable[..., Suite], make_plan: MakePlan) -> None:
    registered()
    made = make_plan(engine=EngineConfig(max_context=40))
    assert made.notes == (
        "pick: prompt cut to the context in 2 of 100 items",
        "write: prompt cut to the context in 32 of 100 items",
    )


def test_refused_prompts_fail_the_plan_by_name(
    store: Store, registered: Callable[..., Suite], make_plan: MakePlan
) -> None:
    registered(on_long_prompt="refuse")
    with pytest.raises(UserError, match=r"'pick' refuses prompts .*'i039' \(1 tokens over\), 'i079'"):
        make_plan(engine=EngineConfig(max_context=40))
    assert store.catalog.runs() == []


def test_unknown_and_empty_suites(store: Store, registered: Callable[..., Suite], make_plan: MakePlan) -> None:
    registered()
    with pytest.raises(UserError, match=r"no suite 'bohts'.*; close: 'both'"):
        make_plan(suite="bohts")
    with pytest.raises(UserError, match="'2'"):
        make_plan(suite="both@2")
    with pytest.raises(UserError, match="no items"):
        make_plan(suite=Suite(name="none", version="1", tier="health", entries=()))
    assert store.catalog.runs() == []
