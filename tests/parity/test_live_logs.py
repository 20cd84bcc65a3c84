"""Files that the real lm-eval 0.4.9 writes with ``--log_samples`` are imported, and score as it says they did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_tasks.aggregate import aggregate
from eval_tasks.grade import grade
from eval_tasks.recorded import import_run
from eval_tasks.records import ImportedRows
from eval_tasks.register import register_benchmark
from eval_tasks.store import Store
from tests.parity.reference import Reference, UnavailableError, reference_python
from tests.parity.shaped_tasks import ShapedTask, gsm8k, mmlu
from tests.parity.tiny_model import write_model

pytestmark = pytest.mark.full

NOW = "2026-01-01T00:00:00+00:00"
TASKS = {
    "mmlu": (mmlu(None, n_subjects=1, n_items=30, n_examples=2), {"acc": "acc,none", "acc_norm": "acc_norm,none"}),
    "gsm8k": (
        gsm8k(None, n_items=6, n_examples=1, max_tokens=16),
        {"strict": "exact_match,strict-match", "flexible": "exact_match,flexible-extract"},
    ),
}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reference]:
    try:
        python = reference_python()
    except UnavailableError as error:
        pytest.skip(f"lm-eval's environment cannot be made here: {error}")
    with Reference(python) as running:
        running.ask("load", folder=str(write_model(tmp_path_factory.mktemp("random") / "model")), dtype="float32")
        yield running


@pytest.mark.parametrize("name", TASKS)
def test_a_log_of_the_real_harness_gives_its_scores(
    name: str, reference: Reference, store: Store, tmp_path: Path
) -> None:
    task: ShapedTask = TASKS[name][0]
    ours, theirs = task.write(tmp_path, Path(reference.ask("tasks_folder")["folder"]))
    given = {"folder": str(theirs), "task": task.name, "num_fewshot": task.n_examples, "batch_size": 4}
    results = reference.ask("log_samples", **given, out=str(tmp_path / "out"))["results"]
    files = sorted((tmp_path / "out").rglob("samples_*.jsonl"))
    assert len(files) == 1
    register_benchmark(store, ours, NOW)
    source = ImportedRows(format="lm-eval", files=(), name="of the harness")
    report = import_run(store, benchmark=task.name, source=source, files=files, now=NOW)
    assert (report.n_rows, report.n_items, report.n_empty) == (len(task.rows), len(task.rows), 0)
    grade(store, run_id=report.run_id)
    scores = {m.metric: m.score for m in aggregate(store, report.run_id)}
    for metric, their_name in TASKS[name][1].items():
        assert scores[metric] == pytest.approx(results[their_name], abs=1e-12)
    if name == "mmlu":
        assert 0 < scores["acc"] < 1
