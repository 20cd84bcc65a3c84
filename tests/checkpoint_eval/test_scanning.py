"""The steps of the contamination scan without Airflow: what is due is planned, a pod per shard, closed, joined."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from checkpoint_eval import scanning, steps
from eval_tasks.contamination.corpus import register_corpus
from eval_tasks.contamination.scan import load_scan, scan_shard
from eval_tasks.store import Store
from tests.answered import answered, checkpoint
from tests.contamination.corpora import NOW, write_jsonl

__all__ = ["answered", "checkpoint"]


@pytest.fixture
def run_id(answered, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A graded run of a checkpoint trained on the corpus `web`, which holds the text of one item."""
    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(tmp_path / "home"))
    made: str = answered()
    trained = store.catalog.checkpoint(store.catalog.run(made).request.checkpoint_id)
    store.catalog.save_checkpoint(replace(trained, corpora=("web",)))
    benchmark = store.catalog.benchmark("colours")
    fields = [str(value) for value in store.blobs.get_items(benchmark.items_blob)[3].fields.values()]
    for n in range(3):
        write_jsonl(tmp_path / f"web/{n}.jsonl", [" ".join(fields), "nothing here"])
    register_corpus(store, "web", str(tmp_path / "web"), now=NOW)
    (tmp_path / "home/config.yaml").write_text("contamination: {shard_bytes: 1}\n", "utf-8")
    return made


def test_what_is_due_is_planned_scanned_closed_and_joined(run_id: str, store: Store) -> None:
    (planned,) = scanning.plan({})
    assert planned["corpus"] == "web"
    pods = scanning.pods([planned])
    assert [pod["arguments"][:4] for pod in pods] == [
        ["contamination", "scan-shard", "--scan", planned["plan_uri"]]
    ] * 3
    assert len({pod["name"] for pod in pods}) == 3
    scan = load_scan(store, planned["plan_uri"])
    scan_shard(store, scan, 1)
    assert [pod["labels"]["checkpoint-eval/shard"] for pod in scanning.pods([planned])] == ["0", "2"]
    for shard in (0, 2):
        scan_shard(store, scan, shard)
    benchmark_ids = scanning.close([planned])
    assert set(benchmark_ids) == set(store.catalog.run(run_id).request.benchmark_ids)
    assert scanning.affected_runs(benchmark_ids) == [run_id]
    steps.join_contamination([run_id])
    sentences = {m.contamination for m in store.catalog.measurements(run_id)}
    assert all(" of items in web, checked " in sentence for sentence in sentences)
    assert scanning.plan({}) == [] and scanning.pods([]) == [] and scanning.close([]) == []


def test_a_scan_asks_for_no_accelerator(run_id: str, tmp_path: Path) -> None:
    config = "contamination: {shard_bytes: 1}\nenvironments: [{name: big, gpus: 8, device: cuda}]\n"
    (tmp_path / "home/config.yaml").write_text(config, "utf-8")
    (pod, *_) = scanning.pods(scanning.plan({"corpora": ["web"], "benchmarks": ["colours"]}))
    assert "nvidia.com/gpu" not in pod["pod_template_dict"]["spec"]["containers"][0]["resources"]["limits"]


def test_runs_of_other_benchmarks_are_left_alone(run_id: str) -> None:
    assert scanning.affected_runs(["another"]) == []
