"""Public data of other decontamination tools: known overlaps are found, rephrasings are not, and that is measured."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from eval_tasks.contamination.finding import Findings
from eval_tasks.contamination.items import ItemText
from eval_tasks.contamination.recall import measure_recall
from eval_tasks.contamination.rule import Rule
from eval_tasks.contamination.table import build_table
from eval_tasks.store import Store
from tests.contamination.corpora import item, scanned
from tests.contamination.test_finding import documents

pytestmark = pytest.mark.golden


def references(folder: Path) -> list[ItemText]:
    path = folder / "contamination/decon/reference/question_answer_reference.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [item(str(row["doc_id"]), row["question"], answer=row["answer"]) for row in rows]


@pytest.mark.parametrize(
    ("name", "share_at_13", "longest"),
    [
        ("clean", 0.0, 0),
        ("contaminated_at_beginning", 1.0, 25),
        ("contaminated_at_end", 1.0, 25),
        ("contaminated_punctuation_variation", 1.0, 25),
        ("contaminated_single_edit", 8 / 13, 20),
    ],
)
def test_known_overlaps_of_decon_are_found(
    golden: Path, store: Store, name: str, share_at_13: float, longest: int
) -> None:
    table = build_table(Rule(), [("bench", references(golden))])
    _, rows = scanned(store, golden / f"contamination/decon/training/{name}.jsonl", table)
    found = rows["101"]
    assert found["question_share"][1] == pytest.approx(share_at_13)
    assert found["longest_words"] == longest
    assert found["status"] == ("contaminated" if share_at_13 else "clean")
    assert found["n_answer_near"] == (1 if share_at_13 else 0)


def test_most_rephrasings_are_not_found(golden: Path, store: Store) -> None:
    """Honest negatives: exact n-grams cannot see them, which docs/contamination.md says."""
    folder = golden / "contamination/rephrase"
    with (folder / "sociology_test.csv").open(encoding="utf-8", newline="") as handle:
        items = [item(f"s{n}", row[0], choices=row[1:5]) for n, row in enumerate(csv.reader(handle))]
    table = build_table(Rule(), [("bench", items)])
    _, rows = scanned(store, folder / "sociology_test_rephrase_english_filtered_question.jsonl", table)
    checkable = [row for row in rows.values() if row["status"] != "not_checkable"]
    flagged = [row for row in checkable if row["status"] == "contaminated"]
    assert len(items) > 150 and len(checkable) > 80
    assert len(flagged) / len(checkable) < 0.25


def test_rephrased_gsm8k_is_missed_and_the_original_is_found(golden: Path, store: Store) -> None:
    with (golden / "gsm8k/test.jsonl").open(encoding="utf-8") as handle:
        items = [item(f"g{n}", json.loads(line)["question"]) for n, line in enumerate(handle)]
    table = build_table(Rule(), [("bench", items)])
    _, rows = scanned(store, golden / "contamination/rephrase/rephrase_gsm8k.jsonl.gz", table)
    assert sum(row["status"] == "contaminated" for row in rows.values()) / len(rows) < 0.1
    _, rows = scanned(store, golden / "gsm8k/test.jsonl", table, text_field="question", now="2026-02-01T00:00:00+00:00")
    assert {row["status"] for row in rows.values()} <= {"contaminated", "not_checkable"}
    assert all(row["whole_question"] for row in rows.values())


def test_recall_on_real_questions_and_real_text(golden: Path) -> None:
    with gzip.open(golden / "gsm8k/train.jsonl.gz", "rt", encoding="utf-8") as handle:
        items = [item(f"g{n}", json.loads(next(handle))["question"]) for n in range(400)]
    text = (golden / "corpora/gutenberg_grimm.txt").read_text("utf-8")
    sample = [paragraph for paragraph in text.split("\n\n") if len(paragraph) > 400][:100]
    by_kind = {each.kind: each for each in measure_recall(Rule(), items, sample)}
    for kind in ("whole", "other punctuation", "wrapped at 8 words", "upper case"):
        each = by_kind[kind]
        assert each.n_contaminated == each.n_items == each.found[8] == each.found[13] == 50
        assert each.mean_share[13] == 1.0
    assert by_kind["first half"].found[13] >= 45
    assert by_kind["every 20th word replaced"].found[8] == 50
    assert by_kind["every 10th word replaced"].found[13] == 0
    assert by_kind["not planted"].found == {8: 0, 13: 0}


def test_a_book_holds_none_of_another_book_s_n_grams(golden: Path) -> None:
    grimm = (golden / "corpora/gutenberg_grimm.txt").read_text("utf-8").split("\n\n")
    table = build_table(
        Rule(thresholds={13: 0.2}), [("bench", [item(f"p{n}", text) for n, text in enumerate(grimm) if text])]
    )
    found = Findings(table)
    found.add(documents([(golden / "corpora/tinyshakespeare.txt").read_text("utf-8")]))
    assert found.runs().num_rows == 0
