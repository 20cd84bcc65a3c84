from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eval_tasks.datasets import items_digest, load_dataset, load_items
from eval_tasks.digests import digest_bytes
from eval_tasks.errors import UserError
from eval_tasks.registry import BenchmarkSpec

Row = dict[str, Any]

ROWS: list[Row] = [
    {"item_id": "b", "question": "1+1", "options": ["2", "3"], "answer": 0, "subject": "sums"},
    {"item_id": "a", "question": "2+2", "options": ["3", "4"], "answer": 1, "subject": "sums"},
    {"item_id": "c", "question": "3+3", "options": ["5", "6"], "answer": 1, "subject": "more"},
]


def _source(folder: Path, rows: list[Row], name: str = "rows.jsonl") -> dict[str, str]:
    if name.endswith(".parquet"):
        stream = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows), stream)
        data = stream.getvalue()
    else:
        data = "\n".join(json.dumps(row) for row in rows).encode()
    (folder / name).write_bytes(data)
    return {"uri": name, "blake3": digest_bytes(data)}


def _spec(folder: Path, rows: list[Row], name: str = "rows.jsonl", **changes: Any) -> BenchmarkSpec:
    spec: Row = {
        "name": "toy",
        "version": "1",
        "kind": "choice",
        "licence": "MIT",
        "source": _source(folder, rows, name),
        "item": {"id": "item_id", "target": "answer", "stratum": "subject"},
        "prompt": {"item": "{{ question }}", "choices": "options"},
        "scorer": {"name": "choice"},
        "primary_metric": "acc",
    }
    return BenchmarkSpec.model_validate({**spec, **changes})


def _with_answers(*answers: Any, options: list[str]) -> list[Row]:
    return [{**ROWS[0], "item_id": str(n), "options": options, "answer": a} for n, a in enumerate(answers)]


def test_items_come_in_id_order_with_all_their_columns(tmp_path: Path) -> None:
    items = load_items(_spec(tmp_path, ROWS), tmp_path)
    assert [(i.item_id, i.target, i.stratum, i.cluster) for i in items] == [
        ("a", 1, "sums", None),
        ("b", 0, "sums", None),
        ("c", 1, "more", None),
    ]
    assert items[0].fields == ROWS[1]


def test_the_digest_ignores_format_and_order_but_no_content(tmp_path: Path) -> None:
    base = items_digest(load_items(_spec(tmp_path, ROWS), tmp_path))
    swapped = [dict(reversed(row.items())) for row in reversed(ROWS)]
    assert items_digest(load_items(_spec(tmp_path, swapped, "rows.parquet"), tmp_path)) == base
    changed = [{**ROWS[0], "question": "1+1?"}, *ROWS[1:]]
    assert items_digest(load_items(_spec(tmp_path, changed), tmp_path)) != base
    regrouped = _spec(tmp_path, ROWS, item={"id": "item_id", "target": "answer", "cluster": "subject"})
    assert items_digest(load_items(regrouped, tmp_path)) != base


def test_ids_are_text_joined_or_a_digest_of_the_row(tmp_path: Path) -> None:
    rows = [{**row, "n": n} for n, row in enumerate(ROWS)]
    joined = load_items(_spec(tmp_path, rows, item={"id": ["subject", "n"], "target": "answer"}), tmp_path)
    assert [i.item_id for i in joined] == ["more/2", "sums/0", "sums/1"]
    by_digest = _spec(tmp_path, rows, item={"target": "answer"})
    reordered = _spec(tmp_path, rows[::-1], "other.jsonl", item={"target": "answer"})
    ids = [i.item_id for i in load_items(by_digest, tmp_path)]
    assert ids == [i.item_id for i in load_items(reordered, tmp_path)]
    assert {len(i) for i in ids} == {32}


@pytest.mark.parametrize("value", [1.0, True, "", " ", None])
def test_an_id_that_is_no_id(tmp_path: Path, value: object) -> None:
    with pytest.raises(UserError, match="row 2: id column 'item_id'"):
        load_items(_spec(tmp_path, [ROWS[0], {**ROWS[1], "item_id": value}]), tmp_path)


def test_doubled_ids_name_the_first_few(tmp_path: Path) -> None:
    rows = [{**ROWS[0], "item_id": f"i{n // 2}"} for n in range(14)]
    with pytest.raises(UserError, match=r"7 item ids stand more than once in item_id: 'i0', .*'i4' and 2 more"):
        load_items(_spec(tmp_path, rows), tmp_path)


def test_equal_rows_without_an_id_are_told_apart_whatever_their_order(tmp_path: Path) -> None:
    item = {"target": "answer"}
    once = {i.item_id for i in load_items(_spec(tmp_path, ROWS, item=item), tmp_path)}
    thrice = load_items(_spec(tmp_path, [ROWS[1], *ROWS, ROWS[1]], "more.jsonl", item=item), tmp_path)
    other = load_items(_spec(tmp_path, [*ROWS[::-1], ROWS[1], ROWS[1]], "order.jsonl", item=item), tmp_path)
    assert len({i.item_id for i in thrice}) == 5
    assert once < {i.item_id for i in thrice}
    assert items_digest(thrice) == items_digest(other)


def test_gold_as_index_text_letter_or_list(tmp_path: Path) -> None:
    texts = load_items(
        _spec(tmp_path, _with_answers(1, "B", " b ", "no", [0, "B"], 1.0, options=["yes", "no"])), tmp_path
    )
    assert [i.target for i in texts] == [1, 1, 1, 1, [0, 1], 1]
    numbers = load_items(_spec(tmp_path, _with_answers("2", "0", 1, options=["1", "2", "3"])), tmp_path)
    assert [i.target for i in numbers] == [1, 0, 1]
    letters = _spec(tmp_path, _with_answers("C", options=["x"]), prompt={"item": "q", "choices": ["A", "B", "C"]})
    assert load_items(letters, tmp_path)[0].target == 2


@pytest.mark.parametrize("answer", [2, -1, "maybe", "C", None, True, 0.5])
def test_a_gold_answer_that_is_no_choice(tmp_path: Path, answer: object) -> None:
    with pytest.raises(UserError, match=r"row 1: gold .* is no choice"):
        load_items(_spec(tmp_path, [*_with_answers(answer, options=["yes", "no"]), ROWS[1]]), tmp_path)


def test_gold_text_of_two_choices(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the text of 2 choices"):
        load_items(_spec(tmp_path, _with_answers("x", options=["x", "x "])), tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"item": {"id": "item_id", "target": "answr"}}, r"'answr' \(item.target\); close: 'answer'"),
        ({"item": {"id": "id", "target": "answer"}}, r"'id' \(item.id\)"),
        ({"item": {"id": "item_id", "target": "answer", "stratum": "subjct"}}, "close: 'subject'"),
        ({"prompt": {"item": "q", "choices": "option"}}, r"\(prompt.choices\); close: 'options'"),
        ({"few_shot": {"k": 1, "match": "topic"}}, r"'topic' \(few_shot.match\)"),
    ],
)
def test_a_missing_column_is_named(tmp_path: Path, changes: Row, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_items(_spec(tmp_path, ROWS, **changes), tmp_path)


def test_targets_and_choices_may_be_templates(tmp_path: Path) -> None:
    rows = [{"question": "q", "sol": [" 1", "2"], "labels": ["x", "y"], "key": "y", "n": 0}]
    prompt = {"item": "{{ question }}", "choices": "{{ [sol[0], 'no: ' ~ sol[1]] }}"}
    for target, gold in (("{{ labels.index(key) }}", 1), ("{{ n }}", 0), ("{{ [0, 1] }}", [0, 1]), ("{{ sol[0] }}", 0)):
        (item,) = load_items(_spec(tmp_path, rows, item={"target": target}, prompt=prompt), tmp_path)
        assert item.target == gold
    with pytest.raises(UserError, match="the template must give a list of texts, not 'q'"):
        load_items(
            _spec(tmp_path, rows, item={"target": "n"}, prompt={**prompt, "choices": "{{ question }}"}), tmp_path
        )
    written = {"kind": "generation", "prompt": {"item": "x"}, "scorer": {"name": "exact_match"}}
    for target, value in (("{{ n }}", "0"), ("{{ labels }}", ["x", "y"]), ("[{{ n", None), ("[{{ n }", None)):
        if value is None:
            with pytest.raises(ValueError, match="not a template"):
                _spec(tmp_path, rows, item={"target": target}, **written)
        else:
            (item,) = load_items(_spec(tmp_path, rows, item={"target": target}, **written), tmp_path)
            assert item.target == value


def test_an_item_carries_its_category(tmp_path: Path) -> None:
    item = {"id": "item_id", "target": "answer", "category": "subject"}
    plain = load_items(_spec(tmp_path, ROWS, item=item), tmp_path)
    assert [i.metadata for i in plain] == [{"category": "sums"}, {"category": "sums"}, {"category": "more"}]
    grouped = _spec(tmp_path, ROWS, item={**item, "categories": {"x": ["sums"], "y": ["more"]}})
    assert [i.metadata["category"] for i in load_items(grouped, tmp_path)] == ["x", "x", "y"]
    assert items_digest(load_items(grouped, tmp_path)) == items_digest(plain)
    with pytest.raises(UserError, match=r"row 3: 'more' is in none of item\.categories; close: 'mores'"):
        load_items(_spec(tmp_path, ROWS, item={**item, "categories": {"x": ["sums", "mores"]}}), tmp_path)


def test_few_shot_rows_keep_their_order_and_their_digest(tmp_path: Path) -> None:
    shots = _source(tmp_path, [ROWS[2], ROWS[0]], "shots.jsonl")
    dataset = load_dataset(_spec(tmp_path, ROWS, few_shot={"k": 2, "source": shots}), tmp_path)
    assert [s.fields["item_id"] for s in sorted(dataset.few_shot, key=lambda s: s.item_id)] == ["c", "b"]
    assert [s.target for s in dataset.few_shot] == [1, 0]
    assert dataset.few_shot_blake3 == shots["blake3"]
    own = load_dataset(_spec(tmp_path, ROWS, few_shot={"k": 2}), tmp_path)
    assert [s.fields["item_id"] for s in own.few_shot] == ["b", "a", "c"]
    assert own.few_shot_blake3 is None


@pytest.mark.golden
def test_real_mmlu_and_gsm8k(golden: Path, tmp_path: Path) -> None:
    def pinned(name: str) -> Row:
        path = golden / name
        return {"uri": str(path), "blake3": digest_bytes(path.read_bytes())}

    mmlu = _spec(
        tmp_path,
        ROWS,
        source=pinned("mmlu/test.jsonl.gz"),
        item={"id": ["subject", "index"], "target": "answer", "stratum": "subject"},
        prompt={"item": "{{ question }}", "choices": ["A", "B", "C", "D"]},
        few_shot={"k": 5, "match": "subject", "source": pinned("mmlu/dev.jsonl.gz")},
    )
    dataset = load_dataset(mmlu, tmp_path)
    assert (len(dataset.items), len(dataset.few_shot)) == (14_042, 285)
    assert len({i.stratum for i in dataset.items}) == 57
    gsm8k = _spec(
        tmp_path,
        ROWS,
        kind="generation",
        source=pinned("gsm8k/test.jsonl"),
        item={"target": "answer"},
        prompt={"item": "Question: {{ question }}\nAnswer:"},
    )
    assert len(load_items(gsm8k, tmp_path)) == 1_319
