"""strict and flexible as lm-eval 0.4.9 gives them, numeric as we do, and the public recorded runs row for row."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.errors import DataError
from eval_tasks.records import Item, Score, ScorerRef
from eval_tasks.scoring import check_items

ScoreOne = Callable[..., dict[str, Score]]
GOLD = "Half of 2,468 is <<2468/2=1234>>1234.\n#### 1,234"


@pytest.mark.parametrize(
    ("output", "gold", "strict", "flexible", "numeric"),
    [
        ("#### 1234", GOLD, 1, 1, 1),
        ("#### 1,234", GOLD, 1, 1, 1),
        ("so 1234...", GOLD, 0, 0, 1),
        ("so 1234 ...", GOLD, 0, 0, 1),
        ("$1,234.", GOLD, 0, 1, 1),
        ("#### 1234.0", GOLD, 0, 0, 1),
        ("#### 12 #### 1234", GOLD, 0, 1, 1),
        ("#### 1234\nThat took 2 steps.", GOLD, 1, 0, 0),
        ("####1234", GOLD, 0, 1, 1),
        ("#### $1234", GOLD, 0, 1, 1),
        ("... is $29.00.", "#### 29", 0, 0, 1),
        ("72 clips, altogether.", "72", 0, 1, 1),
        ("the meeting is at 7:30", "30", 0, 1, 1),
        ("#### −3", "#### -3", 0, 0, 1),
        ("#### -3", "#### -3", 1, 1, 1),
        ("+5", "5", 0, 1, 1),
        ("#### 007", "7", 0, 0, 1),
        ("12.50.3", "12", 0, 0, 0),
        ("no idea", "12", 0, 0, 0),
    ],
)
def test_readings(score_one: ScoreOne, output: str, gold: str, strict: int, flexible: int, numeric: int) -> None:
    scores = score_one("gsm8k", target=gold, output=output)
    assert {metric: row.value for metric, row in scores.items()} == {
        "strict": strict,
        "flexible": flexible,
        "numeric": numeric,
        "boxed": numeric,  # without a box it reads as numeric does
    }


@pytest.mark.parametrize(
    ("output", "gold", "boxed", "detail"),
    [
        (r"so \boxed{18}, that is 3 times 6", "18", 1, ""),
        (r"\boxed{3} ... wait, \boxed{18}", "18", 1, ""),
        (r"\boxed{\$1{,}234.00 \text{ per 2 days}}", GOLD, 1, ""),
        (r"\boxed{\dfrac{36}{2}}", "18", 1, ""),
        (r"\boxed{-\frac{6}{2}}", "-3", 1, ""),
        (r"\boxed{1,\!234}", GOLD, 1, ""),
        (r"\boxed{17} hence 18", "18", 0, ""),
        (r"\boxed{\text{none}} 18", "18", 0, "no digit"),
        (r"\boxed{\frac{1}{0}}", "18", 0, ""),
        (r"\boxed{18", "18", 1, "no box"),
        ("#### 18", "18", 1, "no box"),
        ("eighteen", "18", 0, "no digit"),
    ],
)
def test_boxed_reads_the_last_closed_box_else_the_last_number(
    score_one: ScoreOne, output: str, gold: str, boxed: int, detail: str
) -> None:
    found = score_one("gsm8k", target=gold, output=output)["boxed"]
    assert (found.value, found.detail) == (boxed, detail)


def test_a_reading_without_a_digit_is_flagged(score_one: ScoreOne) -> None:
    scores = score_one("gsm8k", target="18", output="18 ...")
    assert (scores["flexible"].extracted, scores["flexible"].detail) == ("...", "no digit")
    assert (scores["numeric"].extracted, scores["numeric"].detail) == ("18", "")
    assert score_one("gsm8k", target="18", output="eighteen")["numeric"].detail == "no digit"


@pytest.mark.parametrize("target", ["no number", "#### ", None, "#### 1.2.3"])
def test_a_gold_answer_without_a_number_is_refused_at_loading(target: object) -> None:
    with pytest.raises(DataError, match="item 'q1' has no number as its gold answer"):
        check_items(ScorerRef(name="gsm8k", version="1"), [Item(item_id="q1", fields={}, target=target)])


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


@pytest.mark.golden
def test_is_correct_of_four_recorded_runs_is_reproduced_for_every_row(golden: Path, score_one: ScoreOne) -> None:
    # these solutions end in "A: 18", so the reading that needs no "####" is the one to hold against is_correct
    correct: Counter[str] = Counter()
    for row in rows_of(golden / "gsm8k/example_model_solutions.jsonl.gz"):
        gold = row["ground_truth"].rpartition("A:")[2].strip()
        for run in ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"):
            scores = score_one("gsm8k", target=gold, output=row[run]["solution"])
            assert scores["flexible"].value == scores["numeric"].value == row[run]["is_correct"], row[run]
            assert scores["boxed"].value == scores["numeric"].value
            correct[run] += row[run]["is_correct"]
    assert correct == {"6b_finetuning": 286, "6b_verification": 515, "175b_finetuning": 458, "175b_verification": 742}


@pytest.mark.golden
@pytest.mark.parametrize("name", ["davinci003_base", "davinci003_re2", "gpt4omini_base", "gpt4omini_re2"])
def test_numeric_equality_gives_the_recorded_score_of_the_rereading_runs(
    golden: Path, score_one: ScoreOne, name: str
) -> None:
    n = 0
    for row in rows_of(golden / f"recorded_runs/gsm8k/gsm8k_{name}.jsonl.gz"):
        for prompt in ("vanilla", "cot"):
            recorded = row[prompt]
            scores = score_one("gsm8k", target=str(row["target"]), output=str(recorded["answer"]))
            assert scores["numeric"].value == recorded["score"], (row["id"], prompt)
            n += 1
    assert n == 2 * 1319
