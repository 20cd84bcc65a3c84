"""Each tell and each damage is found where it was planted, with its statistic, and not where it is absent."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.datasets import Finding, data_findings
from eval_tasks.records import BenchmarkVersion, DataSource, Item, PromptTemplate, ScorerRef

WORDS = ("amber", "birch", "cedar", "drake")


def benchmark(**changes: Any) -> BenchmarkVersion:
    template = PromptTemplate(item="{{ question }}", choices="choices")
    fields: dict[str, Any] = {"kind": "choice", "template": template, "chance_level": 0.25, **changes}
    return BenchmarkVersion(
        name="toy",
        version="1",
        items_digest="",
        template_digest="",
        scorer_digest="",
        n_items=0,
        items_blob="",
        few_shot_blob=None,
        few_shot=None,
        scorer=ScorerRef(name="choice", version="1"),
        primary_metric="acc",
        licence="",
        source=DataSource(),
        created_at="",
        **fields,
    )


def items(n: int = 400, **columns: Any) -> list[Item]:
    """Sound items: gold positions in turn, choices of one length. A column may be a function of the item's number."""
    made = []
    for i in range(n):
        row = {"question": f"Question {i}?", "choices": list(WORDS), "answer": i % 4}
        row |= {name: value(i) if callable(value) else value for name, value in columns.items()}
        made.append(Item(item_id=f"q{i}", fields=row, target=row["answer"]))
    return made


def named(findings: list[Finding], name: str) -> list[str]:
    return [finding.message for finding in findings if finding.name == name]


def test_sound_data_has_no_finding() -> None:
    assert data_findings(benchmark(), items()) == []
    labels = PromptTemplate(item="{{ question }}", choices=("A", "B", "C", "D"))
    assert data_findings(benchmark(template=labels), items()) == []


def test_repeated_texts_and_their_contradictions() -> None:
    found = data_findings(benchmark(), items(8, question=lambda i: f"Question {max(i, 2)}?", answer=lambda i: i % 2))
    (message,) = named(found, "duplicate_texts")
    assert message == "2 items repeat the text of another and weigh double: 'q0' = 'q1' = 'q2'"
    assert named(found, "contradictory_gold") == [
        "1 texts stand more than once with different gold answers: 'q0' / 'q1' / 'q2'"
    ]
    assert named(data_findings(benchmark(), items(8, question="Same?", answer=1)), "contradictory_gold") == []


@pytest.mark.parametrize("text", ["caf\u00c3\u00a9", "it\u00e2\u20ac\u2122s", "a\ufffdb", "a\x00b", "line\ufeffline"])
def test_damaged_characters(text: str) -> None:
    (message,) = named(
        data_findings(benchmark(), items(8, note=lambda i: text if i == 5 else "naïve « Ça »")), "encoding"
    )
    assert message.startswith("1 items hold damaged characters") and "'q5'" in message


def test_a_favoured_position_is_told_with_its_statistic() -> None:
    # 160 of 400 at the second position and 80 at each other: (60^2 + 3 * 20^2) / 100 = 48
    found = data_findings(benchmark(), items(answer=lambda i: (0, 1, 2, 3, 1)[i % 5]))
    (message,) = named(found, "gold_position")
    assert message.startswith(
        "always answering with the most frequent position (2 of 4) scores 40.0%, and chance is 25.0%"
    )
    assert "chi-square 48.0 with 3 degrees of freedom" in message
    few = data_findings(benchmark(), items(10, answer=lambda i: (0, 1, 2, 3, 1)[i % 5]))
    assert named(few, "gold_position") == []


def test_a_length_that_tells_is_told_for_texts_and_behind_labels() -> None:
    def choices(i: int) -> list[str]:
        gold_is_longest = i % 2 == 0
        longest = i % 4 if gold_is_longest else (i + 1) % 4
        return [word + "s" * (n == longest) for n, word in enumerate(WORDS)]

    labels = PromptTemplate(item="{{ question }}", choices=("A", "B", "C", "D"))
    for template in (benchmark().template, labels):
        (message,) = named(data_findings(benchmark(template=template), items(choices=choices)), "gold_length")
        # 200 of 400 where 100 are expected with a variance of 75: z = 11.5
        assert message.startswith("where one choice is the longest, it is the gold one in 50.0% of 400 items")
        assert "z = 11.5" in message


def test_the_label_set() -> None:
    found = data_findings(benchmark(chance_level=None), items(40, answer=lambda i: i % 3))
    assert "choice 4 of 4 is never the gold one, in 40 items" in named(found, "label_set")
    mixed = items(8, choices=lambda i: ["a", "b", "c", "d"][: 3 + i % 2], answer=lambda i: i % 3)
    assert "the number of choices differs: 4 items with 3, 4 items with 4" in named(
        data_findings(benchmark(chance_level=None), mixed), "label_set"
    )
    alike = items(8, choices=lambda i: ["a", "a ", "c", ""] if i == 6 else list(WORDS))
    assert named(data_findings(benchmark(), alike), "label_set") == [
        "1 items have two choices of the same text: 'q6'",
        "1 items have an empty choice and will be invalid: 'q6'",
    ]


def test_a_chance_level_that_is_not_the_data_s() -> None:
    found = data_findings(benchmark(chance_level=0.5), items())
    assert named(found, "chance_level") == ["chance_level is 0.5, and guessing among the choices scores 0.25"]


def test_other_kinds_have_no_choices_to_look_at() -> None:
    texts = [Item(item_id=str(i), fields={"text": "same"}) for i in range(2)]
    found = data_findings(benchmark(kind="loss", template=PromptTemplate(item="{{ text }}")), texts)
    assert [finding.name for finding in found] == ["duplicate_texts"]


@pytest.mark.golden
def test_what_real_mmlu_hides(golden: Path) -> None:
    with gzip.open(golden / "mmlu/test.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    real = [Item(item_id=f"{r['subject']}/{r['index']}", fields=r, target="ABCD".find(str(r["answer"]))
                 if isinstance(r["answer"], str) else r["answer"]) for r in rows]  # fmt: skip
    found = data_findings(benchmark(), real)
    assert [finding.name for finding in found] == [
        "duplicate_texts", "encoding", "gold_blanks", "gold_blanks", "gold_length", "label_set",
    ]  # fmt: skip
    assert named(found, "duplicate_texts")[0].startswith("105 items")
    assert "28.5% of 11685 items" in named(found, "gold_length")[0]
