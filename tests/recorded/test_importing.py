"""Recorded responses as runs: every format, joining, statuses, marks, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.aggregate import aggregate
from eval_tasks.compare import compare
from eval_tasks.errors import UserError
from eval_tasks.grade import grade
from eval_tasks.guard import guard
from eval_tasks.publish import publish
from eval_tasks.recorded import ImportReport, import_run
from eval_tasks.records import ImportedRows, Plan, Run, from_json, to_json
from eval_tasks.run import run_shard
from eval_tasks.store import Store
from tests.answered import answer_by_hand
from tests.planned import N_CHOICE, N_GENERATED, NOW, WORDS, planned, register, write_checkpoint


@pytest.fixture
def imports(store: Store, tmp_path: Path) -> Callable[..., ImportReport]:
    """`imports(rows or text, benchmark, format, name)`: written to a file and imported."""
    register(store, tmp_path / "benchmarks")

    def build(
        rows: Sequence[Any] | str, benchmark: str = "colour-sums", form: Any = "jsonl", name: str = "mine"
    ) -> ImportReport:
        path = tmp_path / f"{name}.{form}"
        path.write_text(rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        source = ImportedRows(format=form, files=(), name=name)
        return import_run(store, benchmark=benchmark, source=source, files=[path], now=NOW)

    return build


def texts(right: Callable[[int], bool], n: int = N_GENERATED) -> list[dict[str, Any]]:
    return [{"item_id": f"g{k:03d}", "output": f"#### {2 * k + 1 if right(k) else -7 - k}"} for k in range(n)]


def documents(gold: bool = True) -> list[dict[str, Any]]:
    """What lm-eval logs for the items of `colours`, its numbers as text."""
    rows = []
    for k in range(N_CHOICE):
        best = k % 4 if gold or k % 2 else (k + 1) % 4
        rows.append(
            {
                "doc_id": k,
                "doc": {
                    "question": f"Which of these is number {k}?",
                    "choices": [WORDS[(k + c) % len(WORDS)] for c in range(4)],
                    "answer": k % 4,
                    "subject": "even" if k % 2 == 0 else "odd",
                },
                "target": str(k % 4),
                "resps": [[[str(-1.0 if c == best else -2.0 - c / 10), "False"]] for c in range(4)],
                "filter": "none",
            }
        )
    return rows


def measured(store: Store, run_id: str) -> Any:
    grade(store, run_id=run_id)
    return {m.metric: m for m in aggregate(store, run_id)}


def test_plain_rows_are_scored_and_measured(store: Store, imports: Callable[..., ImportReport]) -> None:
    report = imports(texts(lambda k: k % 4 != 0))
    numbers = measured(store, report.run_id)
    assert (report.n_rows, report.n_items, report.n_empty) == (N_GENERATED, N_GENERATED, 0)
    assert numbers["strict"].score == pytest.approx(0.75)
    assert guard(store, run_id=report.run_id, now=NOW).checks["row_count"] == "passed"


def test_odd_texts_are_kept_and_scored(store: Store, imports: Callable[..., ImportReport]) -> None:
    """A lone surrogate, which no file can hold, becomes U+FFFD; an empty text is an answer, and wrong."""
    rows = texts(bool)
    rows[0]["output"], rows[1]["output"] = "\ud800 #### 1", ""
    report = imports(rows)
    strict = measured(store, report.run_id)["strict"]
    assert (strict.score, strict.n, strict.n_invalid) == (
        pytest.approx((N_GENERATED - 1) / N_GENERATED),
        N_GENERATED,
        0,
    )
    outputs = store.responses.read(report.run_id, strict.benchmark_id, ["output"])["output"].to_pylist()
    assert outputs[:2] == ["\ufffd #### 1", ""]


def test_a_run_that_was_imported_claims_nothing(store: Store, imports: Callable[..., ImportReport]) -> None:
    run = store.catalog.run(imports(texts(bool)).run_id)
    assert (run.origin, run.env_fingerprint, run.config_digest) == ("imported", None, None)
    assert run.request.checkpoint_id == ""
    assert isinstance(run.request.engine, ImportedRows)
    assert len(run.request.engine.files) == 1
    assert from_json(Run, to_json(run)) == run
    with pytest.raises(UserError, match="imported"):
        _ = run.request.engine_config


def test_the_same_file_is_the_same_run_and_another_is_another(imports: Callable[..., ImportReport]) -> None:
    rows = texts(bool)
    first = imports(rows)
    assert imports(rows) == first
    assert imports(texts(lambda k: False)).run_id != first.run_id
    assert imports(rows, name="other").run_id != first.run_id


def test_importing_again_after_grading_changes_nothing(store: Store, imports: Callable[..., ImportReport]) -> None:
    rows = texts(bool)
    before = measured(store, imports(rows).run_id)
    assert measured(store, imports(rows).run_id) == before


def test_items_without_an_answer_are_missing(store: Store, imports: Callable[..., ImportReport]) -> None:
    report = imports([*texts(bool, 20), {"item_id": "g020", "output": None}])
    strict = measured(store, report.run_id)["strict"]
    assert (strict.n, strict.n_missing, report.n_empty) == (20, N_GENERATED - 20, 1)
    scores = store.scores.read(report.run_id, strict.benchmark_id, metric="strict").to_pylist()
    assert {row["status"] for row in scores if row["item_id"] >= "g020"} == {"missing"}


def test_choices_by_their_logprobs_and_a_nan_is_an_invalid_item(
    store: Store, imports: Callable[..., ImportReport]
) -> None:
    rows = [
        {"item_id": f"c{k:03d}", "choice_logprobs": [-1.0 if c == k % 4 else -2.0 for c in range(4)]}
        for k in range(N_CHOICE)
    ]
    rows[3]["choice_logprobs"] = [None, -1.0, -2.0, -3.0]
    acc = measured(store, imports(rows, "colours").run_id)["acc"]
    assert (acc.score, acc.n_invalid) == (pytest.approx((N_CHOICE - 1) / N_CHOICE), 1)


def test_lm_eval_documents_are_found_by_their_columns(store: Store, imports: Callable[..., ImportReport]) -> None:
    acc = measured(store, imports(documents()[::-1], "colours", "lm-eval").run_id)["acc"]
    assert (acc.score, acc.n) == (1.0, N_CHOICE)


def test_whether_greedy_decoding_agrees_is_kept(store: Store, imports: Callable[..., ImportReport]) -> None:
    rows = documents()
    rows[0]["resps"][0][0][1] = "True"
    plain = [{"item_id": "c001", "choice_logprobs": [-1.0, -2.0, -3.0, -4.0], "greedy": [True, False, False, False]}]
    for given, form, item_id in ((rows, "lm-eval", "c000"), (plain, "jsonl", "c001")):
        run_id = imports(given, "colours", form, form).run_id
        measured(store, run_id)
        benchmark_id = store.catalog.benchmark("colours").benchmark_id
        found = {row.item_id: row.greedy for row in store.responses.rows(run_id, benchmark_id)}
        assert found[item_id] == (True, False, False, False)


def test_lm_eval_rows_of_several_filters_are_one_answer(store: Store, imports: Callable[..., ImportReport]) -> None:
    rows = [
        {
            "doc_id": k,
            "doc": {"question": f"{k} and {k + 1}", "answer": f"#### {2 * k + 1}"},
            "resps": [[f" So #### {2 * k + 1}"]],
            "filter": name,
        }
        for name in ("strict-match", "flexible-extract")
        for k in range(N_GENERATED)
    ]
    strict = measured(store, imports(rows, form="lm-eval").run_id)["strict"]
    assert (strict.score, strict.n) == (1.0, N_GENERATED)


def test_inspect_samples(store: Store, imports: Callable[..., ImportReport]) -> None:
    samples: list[dict[str, Any]] = [
        {"id": row["item_id"], "epoch": 1, "output": {"choices": [{"message": {"content": row["output"]}}]}}
        for row in texts(bool)
    ]
    samples[0]["error"] = {"message": "rate limit"}
    samples[1]["output"]["choices"][0]["message"]["content"] = [
        {"type": "reasoning", "reasoning": "7"},
        {"type": "text", "text": "#### 3"},
    ]
    report = imports(json.dumps({"version": 2, "samples": samples}), form="inspect")
    strict = measured(store, report.run_id)["strict"]
    assert (strict.score, strict.n_missing) == (1.0, 1)


@pytest.mark.parametrize(
    ("rows", "benchmark", "form", "message"),
    [
        ([{"item_id": "g999", "output": "1"}], "colour-sums", "jsonl", "no item 'g999'"),
        ([{"item_id": "g001", "output": "1"}] * 2, "colour-sums", "jsonl", "'g001' is there twice.*line 1"),
        ('{"item_id": "g001", "output": "1"}\n{"item_id": "g0', "colour-sums", "jsonl", "line 2: not JSON"),
        ("", "colour-sums", "jsonl", "no rows"),
        ([{"id": "g001", "output": "1"}], "colour-sums", "jsonl", "no field 'item_id'"),
        ([{"item_id": "g001"}], "colour-sums", "jsonl", "expected one of 'output' and 'choice_logprobs'"),
        ([{"item_id": "g001", "output": 3}], "colour-sums", "jsonl", "output is a int"),
        ([{"item_id": True, "output": "3"}], "colour-sums", "jsonl", "item id True"),
        ([{"item_id": "g001", "output": None}], "colour-sums", "jsonl", "no answer in any"),
        ([{"item_id": "c001", "choice_logprobs": [-1.0]}], "colours", "jsonl", "1 logprobs.*has 4 choices"),
        ([{"item_id": "c001", "choice_logprobs": ["x"] * 4}], "colours", "jsonl", "logprob 'x'"),
        (
            [{"item_id": "c001", "choice_logprobs": [-1.0] * 4, "greedy": [True]}],
            "colours",
            "jsonl",
            "greedy .*one per",
        ),
        ([{"item_id": "c001", "choice_logprobs": [-1.0] * 4, "greedy": [1] * 4}], "colours", "jsonl", "true or false"),
        ([{"doc_id": "c001", "resps": [[["-1.0", "yes"]]] * 4}], "colours", "lm-eval", "'yes' says not whether"),
        (
            [{"item_id": "c001", "choice_logprobs": [0.7, 0.1, 0.1, 0.1]}],
            "colours",
            "jsonl",
            "above 0; give natural log",
        ),
        ([{"item_id": "c001", "output": "A"}], "colours", "jsonl", "scored by the logprobs"),
        ([{"item_id": "g001", "choice_logprobs": [-1.0]}], "colour-sums", "jsonl", "asks for text"),
        ([{"item_id": "t001", "output": "A"}], "colour-text", "jsonl", "of kind loss"),
        ([{"doc_id": 1, "resps": [["a", "b"]]}], "colour-sums", "lm-eval", "2 answers to one request"),
        (
            [{"doc_id": 1, "doc": {"question": "?"}, "resps": [["a"]]}],
            "colour-sums",
            "lm-eval",
            "document 1 is no item",
        ),
        ([{"doc_id": 1, "doc": {"x": "?"}, "resps": [["a"]]}], "colour-sums", "lm-eval", "no column of"),
        ([{"doc_id": 1, "resps": [["a"]]}, {"doc_id": 1, "resps": [["b"]]}], "colour-sums", "lm-eval", "there twice"),
        ('{"samples": [{"id": "g001", "epoch": 2}]}', "colour-sums", "inspect", "epoch 2"),
        ('{"samples": [', "colour-sums", "inspect", "torn"),
        ('{"eval": {}}', "colour-sums", "inspect", "no list 'samples'"),
    ],
)
def test_what_cannot_be_read_or_joined_is_named_and_leaves_no_run(
    store: Store, imports: Callable[..., ImportReport], rows: Any, benchmark: str, form: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        imports(rows, benchmark, form)
    assert store.catalog.runs() == []


def test_documents_that_fit_several_items_are_refused(store: Store, imports: Callable[..., ImportReport]) -> None:
    rows = [{"doc_id": 0, "doc": {"subject": "even"}, "resps": [[[-1.0, False]]] * 4}]
    with pytest.raises(UserError, match=r"35 items \(c000, c002, c004\)"):
        imports(rows, "colours", "lm-eval")


def test_two_imports_are_compared_as_pairs(store: Store, imports: Callable[..., ImportReport]) -> None:
    a = imports(documents(), "colours", "lm-eval", "better").run_id
    b = imports(documents(gold=False), "colours", "lm-eval", "worse").run_id
    for run_id in (a, b):
        measured(store, run_id)
    found = compare(store, a, b)
    assert (found.label_a, found.label_b) == ("better", "worse")
    assert found.tests[0].compatibility == "PAIRED"
    assert found.tests[0].delta == pytest.approx(0.5)
    assert found.tests[0].verdict == "A better"
    assert any(note.startswith("imported: the rows of both runs") for note in found.tests[0].notes)


def test_the_report_bears_the_mark(store: Store, imports: Callable[..., ImportReport]) -> None:
    run_id = imports(texts(lambda k: k % 3 > 0)).run_id
    measured(store, run_id)
    guard(store, run_id=run_id, now=NOW)
    published = publish(store, run_id=run_id, now=NOW)
    html = store.blobs.get(published.html_blob).decode()
    assert "imported responses of mine" in published.terminal
    assert "The rows of this run are imported" in html
    assert "Engine: dtype" not in html


def test_no_pod_can_compute_an_imported_run(store: Store, imports: Callable[..., ImportReport], tmp_path: Path) -> None:
    run = store.catalog.run(imports(texts(bool)).run_id)
    plan: Plan = store.plan(run.plan_blob or "")
    assert plan.shards == ()
    with pytest.raises(UserError, match="imported"):
        run_shard(store, plan_uri=run.plan_blob or "", shard=0, owner="pod", cache_dir=tmp_path)


def test_an_import_against_an_engines_run_says_what_it_is(
    store: Store, imports: Callable[..., ImportReport], tmp_path: Path
) -> None:
    ours = imports(texts(bool)).run_id
    plan = planned(store, write_checkpoint(tmp_path / "step-1"))
    answer_by_hand(store, plan)
    for run_id in (ours, plan.run_id):
        measured(store, run_id)
    test = next(t for t in compare(store, ours, plan.run_id).tests if t.benchmark == "colour-sums")
    assert test.compatibility == "PAIRED"
    assert any(note.startswith("imported against engine: the rows of A") for note in test.notes)
