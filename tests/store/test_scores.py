"""Score sets: added to, never overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_tasks.errors import DataError, UserError
from eval_tasks.settings import Settings
from eval_tasks.store import Store
from eval_tasks.store.parquet import SCORES, Form
from tests.store.samples import BENCHMARK_ID, score

ROWS = [
    score("b", value=0.0, extracted="B", detail="gold A", stratum="s", cluster="c", weight=2.0),
    score("a", value=float("nan"), status="invalid", reason="non_finite"),
    score("a", metric="acc_norm", value=None, status="excluded", extracted="half \ud800"),
]


def test_scores_come_back_sorted_with_one_schema(store: Store) -> None:
    store.scores.write("run", BENCHMARK_ID, "choice@1", ROWS)
    table = store.scores.read("run", BENCHMARK_ID)
    assert table.column_names == [
        "item_id", "metric", "value", "weight", "status", "reason", "extracted", "detail", "stratum", "cluster",
        "sample_values",
    ]  # fmt: skip
    assert table.select(["metric", "item_id", "value", "extracted"]).to_pylist() == [
        {"metric": "acc", "item_id": "a", "value": None, "extracted": None},
        {"metric": "acc", "item_id": "b", "value": 0.0, "extracted": "B"},
        {"metric": "acc_norm", "item_id": "a", "value": None, "extracted": "half \ufffd"},
    ]


def test_columns_that_are_all_null_keep_their_type(store: Store) -> None:
    store.scores.write("one", BENCHMARK_ID, "g", [score("a", value=None, status="missing")])
    store.scores.write("two", BENCHMARK_ID, "g", ROWS)
    assert store.scores.read("one", BENCHMARK_ID).schema == store.scores.read("two", BENCHMARK_ID).schema


def test_one_metric_and_some_columns(store: Store) -> None:
    store.scores.write("run", BENCHMARK_ID, "choice@1", ROWS)
    table = store.scores.read("run", BENCHMARK_ID, metric="acc", columns=["item_id"])
    assert table.to_pydict() == {"item_id": ["a", "b"]}
    with pytest.raises(UserError, match=r"no scores of metric 'ac'.*close: 'acc'"):
        store.scores.read("run", BENCHMARK_ID, metric="ac")


def test_the_same_again_is_nothing_and_other_content_an_error(store: Store) -> None:
    store.scores.write("run", BENCHMARK_ID, "choice@1", ROWS)
    store.scores.write("run", BENCHMARK_ID, "choice@1", ROWS[::-1])
    with pytest.raises(DataError, match=r"'choice@1'.*new version"):
        store.scores.write("run", BENCHMARK_ID, "choice@1", ROWS[:2])
    assert store.scores.read("run", BENCHMARK_ID).num_rows == 3


def test_graders_stand_side_by_side_and_the_last_is_the_default(store: Store) -> None:
    store.scores.write("run", BENCHMARK_ID, "z/judge@1", [score("a", value=0.0)])
    store.scores.write("run", BENCHMARK_ID, "a judge@2", [score("a", value=0.5)])
    assert store.scores.graders("run", BENCHMARK_ID) == ["z/judge@1", "a judge@2"]
    assert store.scores.read("run", BENCHMARK_ID)["value"].to_pylist() == [0.5]
    assert store.scores.read("run", BENCHMARK_ID, "z/judge@1")["value"].to_pylist() == [0.0]


def test_what_was_never_graded_is_said(store: Store) -> None:
    assert store.scores.graders("run", BENCHMARK_ID) == []
    with pytest.raises(UserError, match="not graded"):
        store.scores.read("run", BENCHMARK_ID)
    store.scores.write("run", BENCHMARK_ID, "choice@1", ROWS)
    with pytest.raises(UserError, match="close: 'choice@1'"):
        store.scores.read("run", BENCHMARK_ID, "choice@2")


def test_bad_score_sets_are_refused(store: Store) -> None:
    with pytest.raises(DataError, match="two scores 'acc' for item 'a'"):
        store.scores.write("run", BENCHMARK_ID, "g", [score("a"), score("a", value=0.0)])
    with pytest.raises(DataError, match="other"):
        store.scores.write("run", BENCHMARK_ID, "g", [score("a", benchmark_id="other")])
    assert store.scores.graders("run", BENCHMARK_ID) == []


def test_residue_of_a_crash_is_no_score_set_and_damage_is_named(store: Store, settings: Settings) -> None:
    store.scores.write("run", BENCHMARK_ID, "choice@1", ROWS)
    (path,) = Path(settings.store_uri).glob("scores/**/*.parquet")
    path.with_name("unnamed.parquet").write_bytes(b"")
    path.with_name(".entry.json.tmp").write_bytes(b"{")
    assert store.scores.read("run", BENCHMARK_ID).num_rows == 3
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=path.name):
        store.scores.read("run", BENCHMARK_ID)


def test_sample_values_come_back_and_files_of_a_release_without_them_are_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.scores.write("run", BENCHMARK_ID, "new@1", [score("a", value=0.5, sample_values=(1.0, 0.0)), score("b")])
    table = store.scores.read("run", BENCHMARK_ID, columns=["item_id", "sample_values"])
    assert table["sample_values"].to_pylist() == [[1.0, 0.0], None]
    form = Form(schema=SCORES.schema.remove(SCORES.schema.get_field_index("sample_values")))
    with monkeypatch.context() as earlier:
        for module in ("scores", "score_rows"):
            earlier.setattr(f"eval_tasks.store.{module}.SCORES", form)
        store.scores.write("run", BENCHMARK_ID, "old@1", [score("a")])
    read = store.scores.read("run", BENCHMARK_ID, "old@1", metric="acc", columns=["item_id", "sample_values"])
    assert read.to_pylist() == [{"item_id": "a", "sample_values": None}]
