"""`select` from the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from eval_tasks.aggregate import aggregate
from eval_tasks.cli import main
from eval_tasks.settings import Settings
from eval_tasks.store import open_store
from tests.compare.stored import stored_run
from tests.health.conftest import benchmark, rows


@pytest.fixture
def runs(tmp_path, monkeypatch):
    for name in ("STORE_URI", "CATALOG_URL", "CONFIG"):
        monkeypatch.delenv(f"CHECKPOINT_EVAL_{name}", raising=False)
    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(tmp_path / "home"))
    made = []
    with open_store(Settings()) as store:
        quiz = benchmark(store, "quiz", 80, kind="choice")
        for number in (1, 2, 3):
            values = (np.random.default_rng(number).random(80) < 0.3 * number).astype(float)
            run = stored_run(store, number, (quiz, rows(quiz, values)))
            store.catalog.update_run(run.run_id, status="closed")
            aggregate(store, run.run_id)
            made.append(run.run_id)
    return made


def test_the_best_of_three(runs, capsys):
    assert main(["select", *runs, "--split"]) == 0
    said = capsys.readouterr().out
    assert "best of 3 on 80 items is tiny step 300" in said and "On the other 40" in said
    assert main(["select", *runs, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["benchmarks"][0]["candidates"][0]["run_id"] == runs[2] and len(found["selection_id"]) == 32


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name the runs, or give --training-run with --suite"),
        (["--training-run", "tiny"], "name the runs, or give --training-run with --suite"),
        (["a", "b", "--against", "a"], "it goes with --split"),
        (["--training-run", "tiny", "--suite", "nothing"], "no suite 'nothing'"),
    ],
)
def test_a_question_without_an_answer_is_refused(runs, capsys, arguments, said):
    assert main(["select", *arguments]) == 2
    assert said in capsys.readouterr().err
