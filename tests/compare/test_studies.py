"""Seed studies recorded from runs, and imported from files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from eval_tasks.aggregate import aggregate
from eval_tasks.compare import compare
from eval_tasks.compare.studies import import_study, record_study
from eval_tasks.errors import NotComparableError, UserError
from eval_tasks.records import Scale
from eval_tasks.registry import load_seed_study_file
from eval_tasks.store import Store
from tests.compare.stored import ids, scores_of, stored_run
from tests.compare.test_seed_arms import BENCH, N, run_of, values
from tests.store.samples import NOW

RATES = (0.60, 0.62, 0.65)


def runs(store: Store, n: int = 3, step: int = 100, **changes) -> list[str]:
    made = []
    for k, rate in enumerate(RATES[:n]):
        run = run_of(store, 1 + k, rate, f"seed-{k}", status="closed", **changes)
        store.catalog.update_run(run.run_id, step=step)
        checkpoint = store.catalog.checkpoint(run.request.checkpoint_id)
        store.catalog.save_checkpoint(replace(checkpoint, n_parameters=1_000_000 + 10 * k))
        made.append(run.run_id)
    return made


def test_a_study_is_measured_from_runs(store):
    names = runs(store)
    found = record_study(store, "mine", names, now=NOW, tokens=10**9)
    study = found.study
    (of_bench,) = study.benchmarks
    table = np.array([values(1 + k, rate) for k, rate in enumerate(RATES)])
    assert of_bench.scores == pytest.approx(table.mean(axis=1))
    assert of_bench.s2_raw == pytest.approx(np.var(table.mean(axis=1), ddof=1))
    assert of_bench.psi_seed == pytest.approx(
        np.mean([(table[i] != table[j]).mean() for i in range(3) for j in range(i)])
    )
    assert (of_bench.n, of_bench.n_seeds, of_bench.version, of_bench.flips) == (N, 3, "1", None)
    assert study.scale == Scale(parameters=1_000_000, tokens=10**9, step=100)
    assert (study.origin, study.runs, study.measured_at) == ("runs", tuple(names), "2026-01-31")
    assert study.source == "runs seed-0 step 100, seed-1 step 100, seed-2 step 100"
    assert record_study(store, "mine", names, now="2026-03-01", tokens=10**9).study == study, "again is no new version"
    assert record_study(store, "mine", names, now=NOW).study.version == 2


def test_a_recorded_study_answers_for_two_other_recipes(store):
    record_study(store, "mine", runs(store), now=NOW)
    pair = [run_of(store, 40 + k, rate, f"recipe-{k}").run_id for k, rate in enumerate((0.80, 0.55))]
    found = compare(store, *pair)
    assert found.recipes.answerable and found.recipes.study == "mine@1"
    assert "EXTRAPOLATED" in found.recipes.tests[0].variances[-1].standing


def test_clusters_and_every_metric_are_studied(store):
    bench = replace(BENCH, cluster_key="passage", items_digest="c" * 64)
    made = []
    for k, rate in enumerate(RATES):
        rows = [
            replace(row, cluster=f"p{i % 40}")
            for metric in ("acc", "acc_norm")
            for i, row in enumerate(scores_of(bench, values(1 + k, rate), metric=metric))
        ]
        made.append(stored_run(store, 1 + k, (bench, rows), training_run=f"s{k}", status="closed").run_id)
        store.catalog.update_run(made[-1], step=5)
    study = record_study(store, "mine", made, now=NOW).study
    assert [b.metric for b in study.benchmarks] == ["acc", "acc_norm"]
    assert all(b.flips is not None and b.flips > 0 for b in study.benchmarks)


def test_what_is_no_study_is_refused_by_name(store):
    names = runs(store)
    with pytest.raises(UserError, match="1 run; a study has 3 at least"):
        record_study(store, "mine", names[:1], now=NOW)
    with pytest.raises(UserError, match=r"the study has run '0{31}1' twice"):
        record_study(store, "mine", [names[0], names[0], names[1]], now=NOW)
    same = run_of(store, 9, 0.6, "seed-0", status="closed").run_id
    store.catalog.update_run(same, step=100)
    with pytest.raises(UserError, match="the study has training run 'seed-0' twice"):
        record_study(store, "mine", [names[0], names[2], same], now=NOW)
    store.catalog.update_run(names[1], step=200)
    with pytest.raises(UserError, match=r"of steps 100, 200; a study is of one recipe at one point"):
        record_study(store, "mine", names, now=NOW)
    store.catalog.update_run(names[1], step=100, status="running")
    with pytest.raises(UserError, match="is running, not closed"):
        record_study(store, "mine", names, now=NOW)
    store.catalog.update_run(names[1], status="closed", origin="mock")
    with pytest.raises(UserError, match="made-up answers say nothing of training seeds"):
        record_study(store, "mine", names, now=NOW)
    store.catalog.update_run(names[1], origin="engine")
    checkpoint = store.catalog.checkpoint(store.catalog.run(names[1]).request.checkpoint_id)
    store.catalog.save_checkpoint(replace(checkpoint, n_parameters=7_000_000))
    with pytest.raises(UserError, match=r"have 1,000,000 to 7,000,000 parameters; a study is of one recipe"):
        record_study(store, "mine", names, now=NOW)
    other = replace(BENCH, version="2", template_digest="u" * 64)
    odd = run_of(store, 8, 0.6, "odd", other, status="closed").run_id
    store.catalog.update_run(odd, step=100)
    with pytest.raises(NotComparableError, match="template_digest differs"):
        record_study(store, "mine", [names[0], names[2], odd], now=NOW)
    assert store.catalog.seed_studies() == []


def test_a_quarantined_metric_is_left_out_and_named(store):
    names = runs(store)
    shut = [replace(m, quarantined=True, quarantine_reason="range") for m in aggregate(store, names[1])]
    store.catalog.save_measurements(names[1], shut)
    with pytest.raises(UserError, match=r"has nothing to hold: bench acc: quarantined in run 0{11}2?.*range"):
        record_study(store, "mine", names, now=NOW)


def study_file(folder: Path, **changes) -> Path:
    document = {
        "name": "published",
        "source": "table 3",
        "measured_at": "2024-06-14",
        "scale": {"parameters": 7_000_000_000},
        "benchmarks": [{"benchmark": "bench", "metric": "acc", "n": 1_000, "scores": [0.60, 0.61, 0.62]}],
    }
    path = folder / "study.yaml"
    text = yaml.safe_dump({k: v for k, v in {**document, **changes}.items() if v is not None})
    path.write_text(text.replace("'2024-06-14'", "2024-06-14"), "utf-8")
    return path


def score_file(folder: Path, name: str, scores: list[float | None], **fields) -> str:
    rows = [
        {"item_id": i, "score": s, "benchmark": "bench", **fields}
        for i, s in zip(ids(len(scores)), scores, strict=True)
    ]
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return name


def imported(store: Store, path: Path):
    return import_study(store, load_seed_study_file(path), path.parent, now=NOW)


def test_published_figures_are_imported(store, tmp_path):
    study = imported(store, study_file(tmp_path))
    (found,) = study.benchmarks
    assert (found.n_seeds, found.s2_raw) == (3, pytest.approx(1e-4))
    assert found.flip_variance == 0.0, "without a discordance all of it counts as common"
    assert (study.reference, study.measured_at, study.origin) == ("published@1", "2024-06-14", "imported")
    known = [{"benchmark": "b", "metric": "acc", "n": 500, "sd": 0.01, "n_seeds": 4, "discordance": 0.05}]
    again = imported(store, study_file(tmp_path, benchmarks=known))
    assert again.version == 2 and again.benchmarks[0].s2_raw == pytest.approx(1e-4)
    assert again.benchmarks[0].flip_variance == pytest.approx(0.05 / 1_000)


def test_files_of_item_scores_are_measured_as_runs_are(store, tmp_path):
    from_runs = record_study(store, "mine", runs(store), now=NOW).study.benchmarks[0]
    files = [score_file(tmp_path, f"s{k}.jsonl", values(1 + k, rate)) for k, rate in enumerate(RATES)]
    path = study_file(tmp_path, benchmarks=None, score_files=files, metric="acc", versions={"bench": "1"})
    assert imported(store, path).benchmarks == (from_runs,)
    grouped = [score_file(tmp_path, f"c{k}.jsonl", values(1 + k, r), cluster="one") for k, r in enumerate(RATES)]
    path = study_file(tmp_path, benchmarks=None, score_files=grouped, metric="acc")
    assert imported(store, path).benchmarks[0].flips is not None


def test_files_that_are_no_study_are_refused_by_name(store, tmp_path):
    a = score_file(tmp_path, "a.jsonl", values(1, 0.6))
    a_again = score_file(tmp_path, "again.jsonl", values(7, 0.6))
    other = score_file(tmp_path, "b.jsonl", values(2, 0.6)[:50])
    lost = score_file(tmp_path, "lost.jsonl", [None] * N)
    apart = tmp_path / "apart.jsonl"
    apart.write_text('{"item_id": "i0000", "score": 1, "benchmark": "prose"}\n')
    for files, error, said in (
        ([a, other, a_again], NotComparableError, "run 2 of the study was planned on other items than run 1"),
        ([a, a_again, "apart.jsonl"], NotComparableError, "no benchmark in common"),
        ([a, a_again, lost], NotComparableError, "fewer than two items have a score in every run"),
        ([a, a_again, "absent.jsonl"], UserError, "absent.jsonl cannot be read"),
    ):
        with pytest.raises(error, match=said):
            imported(store, study_file(tmp_path, benchmarks=None, score_files=files, metric="acc"))
    same = score_file(tmp_path, "c.jsonl", values(3, 0.6))
    with pytest.raises(UserError, match="versions names 'bnch'"):
        imported(
            store,
            study_file(tmp_path, benchmarks=None, score_files=[a, a_again, same], metric="acc", versions={"bnch": "1"}),
        )
    assert store.catalog.seed_studies() == []
