"""A benchmark that declares sampling and reasoning, through every command, on a tiny model that writes few symbols."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from safetensors.numpy import load_file, save_file

from eval_tasks.digests import digest_bytes
from eval_tasks.records import Response
from eval_tasks.run import InterruptedShardError, run_shard
from eval_tasks.settings import Settings
from eval_tasks.store import open_store
from tests.planned import write_checkpoint

Run = Callable[..., str]
RunJson = Callable[..., Any]

N_ITEMS = 34
SAMPLES = 4
SAMPLING = {"temperature": 0.7, "top_k": 6, "top_p": 0.98, "samples": SAMPLES, "pass_at": [1, 2, 4], "reason": "test"}
# Of each pair one is likely after any text: digits, reasoning markers, and what ends an output.
PAIRS = (("4", "7"), ("(", ")"), ("</s>", "a"), ("\n", "b"), (" ", "c"), ("d", "e"))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_checkpoint(tmp_path_factory.mktemp("checkpoint") / "step-7")
    vocabulary = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    shown = {" ": "Ġ", "\n": "Ċ"}
    tensors = load_file(folder / "model.safetensors")
    head = tensors["lm_head.weight"]
    for one, other in PAIRS:
        row = head[vocabulary[shown.get(one, one)]] * np.float32(0.3)
        head[vocabulary[shown.get(one, one)]], head[vocabulary[shown.get(other, other)]] = row, -row
    chosen = {vocabulary[shown.get(symbol, symbol)] for pair in PAIRS for symbol in pair}
    head[[i for i in range(len(head)) if i not in chosen]] = 0
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture
def suite(run: Run, home: Path, tmp_path: Path) -> Path:
    """The benchmark `sums`, sampled, `greedy-sums` of the same items, and a suite of both."""
    rows = [{"item_id": f"s{n:03d}", "question": f"{n} + {n % 7}", "answer": "47"[n % 2]} for n in range(N_ITEMS)]
    data = tmp_path / "sums.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    spec = {
        "name": "sums",
        "version": "1",
        "kind": "generation",
        "licence": "Apache-2.0",
        "source": {"uri": data.name, "blake3": digest_bytes(data.read_bytes())},
        "item": {"id": "item_id", "target": "answer"},
        "prompt": {"item": "Q: {{ question }}\nA:", "stop": ["\n"]},
        "sampling": SAMPLING,
        "scorer": {"name": "gsm8k", "reasoning": {"name": "brackets", "start": "(", "end": ")"}},
        "primary_metric": "flexible",
        "max_tokens": 24,
    }
    files = []
    for document in (spec, {**{k: v for k, v in spec.items() if k != "sampling"}, "name": "greedy-sums"}):
        files.append(tmp_path / f"{document['name']}.yaml")
        files[-1].write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    named = [{"name": "sums"}, {"name": "greedy-sums"}]
    (tmp_path / "suite.yaml").write_text(
        yaml.safe_dump({"name": "sampled", "version": "1", "tier": "selection", "benchmarks": named}), "utf-8"
    )
    run("benchmarks", "register", *files)
    run("suites", "register", tmp_path / "suite.yaml")
    (home / "config.yaml").write_text(yaml.safe_dump({"limits": {"shard_cost_tokens": 1000}}))
    return tmp_path


@pytest.fixture(autouse=True)
def keep_signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def stored_rows(run_id: str) -> list[Response]:
    with open_store(Settings()) as store:
        benchmark = store.catalog.benchmark("sums")
        return list(store.responses.rows(run_id, benchmark.benchmark_id))


def evaluated(run: Run, run_json: RunJson, checkpoint_id: str, seed: int = 0) -> str:
    """A run with that seed, shard by shard, one of them asked for twice, up to its measurements."""
    plan = run_json("plan", checkpoint_id, "--suite", "sampled", "--seed", seed)
    shards = [s["shard"] for s in plan["shards"]]
    computed = [run_json("run-shard", "--plan", plan["plan_uri"], "--shard", s)["n_computed"] for s in [*shards, 0]]
    assert len(shards) > 2 and sum(computed) == 2 * N_ITEMS and computed[-1] == 0
    for step in ("grade", "aggregate", "join-contamination"):
        run(step, plan["run_id"])
    return str(plan["run_id"])


def interrupt(plan_uri: str, folder: Path) -> None:
    """Run one shard until its first batch is done."""
    stop = threading.Event()

    def stop_after_a_batch(done: int, total: int) -> None:
        if 0 < done < total:
            stop.set()

    with open_store(Settings()) as store, pytest.raises(InterruptedShardError):
        run_shard(
            store,
            plan_uri=plan_uri,
            shard=0,
            owner="killed",
            cache_dir=folder / "cache",
            stop=stop,
            progress=stop_after_a_batch,
        )


def reading(output: str) -> str | None:
    """What the scorer is to read: the last number outside brackets, nothing where a bracket stays open."""
    answer = re.sub(r"\([^)]*\)\s*", "", output)
    numbers = re.findall(r"[0-9]+", "" if "(" in answer else answer.partition("\n")[0])
    return numbers[-1] if numbers else None


@pytest.mark.usefixtures("suite")
def test_every_command_takes_a_sampled_benchmark(
    run: Run, run_json: RunJson, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert json.loads(run("benchmarks", "show", "sums"))["sampling"]["samples"] == SAMPLES
    checkpoint_id = run_json("resolve", checkpoint, "--training-run", "tiny")["checkpoint_id"]
    first = evaluated(run, run_json, checkpoint_id)

    rows = stored_rows(first)
    assert [row.item_id for row in rows] == [f"s{n:03d}" for n in range(N_ITEMS)]
    assert {len(row.samples) for row in rows} == {SAMPLES}
    outputs = [sample.output for row in rows for sample in row.samples]
    assert any("(" in output for output in outputs) and any(")" in output for output in outputs)
    assert len(set(outputs)) > N_ITEMS

    right = np.array([[reading(s.output) == "47"[n % 2] for s in row.samples] for n, row in enumerate(rows)])
    assert 0 < right.mean() < 1
    measured = {(m["benchmark"], m["metric"]): m for m in run_json("aggregate", first)}
    sampled = measured["sums", "flexible"]
    assert sampled["score"] == pytest.approx(right.mean())
    assert measured["sums", "flexible_pass@1"]["score"] == pytest.approx(right.mean())
    assert measured["sums", "flexible_pass@4"]["score"] == pytest.approx(right.any(axis=1).mean())
    within = sampled["within_item"]
    assert within["n_samples"] == SAMPLES
    assert within["variance"] == pytest.approx(right.var(axis=1, ddof=1).mean())
    assert 0 < within["se"] < sampled["se"]
    assert measured["greedy-sums", "flexible"]["within_item"] is None
    assert not any("pass@" in metric for benchmark, metric in measured if benchmark == "greedy-sums")

    other = evaluated(run, run_json, checkpoint_id, seed=5)
    assert [row.samples for row in stored_rows(other)] != [row.samples for row in rows]
    tests = {t["benchmark"]: t for t in run_json("compare", first, other)["tests"]}
    # Random weights write reasoning and no answer, which guard does not let pass.
    assert "empty_share: failed on sums flexible" in run("guard", first, code=1)
    assert (tests["sums"]["compatibility"], tests["sums"]["n_discordant"]) == ("SCORE", None)
    assert tests["sums"]["n_pairs"] == N_ITEMS and not tests["sums"]["not_tested"]
    assert tests["greedy-sums"]["n_discordant"] == 0
    assert "sums flexible (4 samples per item): " in run("aggregate", first)
    report = tmp_path / "report.html"
    run("publish", first, "--out", report)
    assert "4 samples per item" in report.read_text("utf-8")

    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(tmp_path / "other"))
    run("benchmarks", "register", tmp_path / "sums.yaml", tmp_path / "greedy-sums.yaml")
    run("suites", "register", tmp_path / "suite.yaml")
    run("resolve", checkpoint, "--training-run", "tiny")
    interrupt(run_json("plan", checkpoint_id, "--suite", "sampled")["plan_uri"], tmp_path)
    run("evaluate", checkpoint, "--suite", "sampled", "--training-run", "tiny", code=1)
    again = stored_rows(run_json("runs", "list")[0]["run_id"])
    assert [row.samples for row in again] == [row.samples for row in rows]


def test_sampling_that_is_not_declared_in_the_benchmark_is_refused(run: Run, suite: Path) -> None:
    spec = yaml.safe_load((suite / "greedy-sums.yaml").read_text("utf-8"))
    path = suite / "warm.yaml"
    path.write_text(yaml.safe_dump({**spec, "name": "warm", "temperature": 0.6}), "utf-8")
    assert "declares in its own file sampling: {temperature: ..." in run("benchmarks", "register", path, code=2)
    changed = yaml.safe_load((suite / "sums.yaml").read_text("utf-8"))
    changed["sampling"]["temperature"] = 0.9
    path.write_text(yaml.safe_dump(changed), "utf-8")
    assert "is registered with other content: sampling" in run("benchmarks", "register", path, code=2)
    changed["primary_metric"] = "flexible_pass@3"
    path.write_text(yaml.safe_dump(changed), "utf-8")
    assert "has no metric 'flexible_pass@3'; close: 'flexible_pass@" in run("benchmarks", "register", path, code=2)
