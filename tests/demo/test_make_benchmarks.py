import random
from collections import Counter
from pathlib import Path

import make_benchmarks
import pyarrow.parquet as pq
import pytest
from make_benchmarks import SHIPPED
from word_problems import training_document

from eval_tasks.datasets import load_items
from eval_tasks.registry import load_benchmark_file, load_rule_file, load_suite_file

BENCHMARKS = {"demo-choice": 360, "demo-text": 200, "demo-steps": 120}


def _held_out_situations() -> set[str]:
    """What happens in each held-out problem, both as a question and as a story would go on."""
    asked = [
        row["question"]
        for name in ("demo-choice", "demo-steps")
        for row in pq.read_table(SHIPPED / f"{name}.parquet").to_pylist()
    ]
    told = [row["text"] for row in pq.read_table(SHIPPED / "demo-text.parquet").to_pylist()]
    situations = {text.split(" How many ")[0] for text in asked} | {text.split(" Now ")[0] for text in told}
    return {situation + end for situation in situations for end in (" How many ", " Now ")}


def test_what_ships_is_what_the_script_writes(tmp_path: Path) -> None:
    written = make_benchmarks.make(tmp_path)
    assert {path.name for path in written} == {path.name for path in SHIPPED.iterdir()}
    for path in written:
        assert path.read_bytes() == (SHIPPED / path.name).read_bytes(), path.name


def test_another_seed_gives_other_items(tmp_path: Path) -> None:
    make_benchmarks.make(tmp_path, seed=1)
    assert (tmp_path / "demo-choice.parquet").read_bytes() != (SHIPPED / "demo-choice.parquet").read_bytes()


def test_no_held_out_problem_is_in_the_training_stream() -> None:
    rng = random.Random(0)
    stream = "\n".join(training_document(rng) for _ in range(12_000))
    situations = _held_out_situations()
    assert len(situations) > 1200
    pieces = {piece + end for end in (" How many ", " Now ") for piece in _pieces(stream, end)}
    assert len(pieces) > 10_000
    assert not pieces & situations


def _pieces(stream: str, end: str) -> set[str]:
    """The one to three sentences that stand before each `end`: every situation of the stream is among them."""
    found = set()
    for part in stream.split(end)[:-1]:
        sentences = part.rsplit("\n", 1)[-1].removeprefix("Q: ").removeprefix("Question: ").split(". ")
        found |= {". ".join(sentences[-n:]) for n in (1, 2, 3)}
    return found


def test_few_shot_examples_are_not_held_out_problems() -> None:
    few_shot = pq.read_table(SHIPPED / "demo-choice-few-shot.parquet").to_pylist()
    assert not {row["question"].split(" How many ")[0] + " How many " for row in few_shot} & _held_out_situations()


def test_no_item_appears_twice() -> None:
    for name, column in (("demo-choice", "question"), ("demo-steps", "question"), ("demo-text", "text")):
        texts = pq.read_table(SHIPPED / f"{name}.parquet")[column].to_pylist()
        assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(("name", "count"), BENCHMARKS.items())
def test_each_benchmark_loads_with_its_subjects_as_strata(name: str, count: int) -> None:
    spec = load_benchmark_file(SHIPPED / f"{name}.yaml")
    items = load_items(spec, SHIPPED)
    assert len({item.item_id for item in items}) == len(items) == count
    assert Counter(item.stratum for item in items) == dict.fromkeys(("add", "subtract", "multiply", "chain"), count / 4)


def test_the_suites_and_the_rule_name_what_ships() -> None:
    for tier in ("health", "selection"):
        suite = load_suite_file(SHIPPED / f"demo-{tier}.yaml")
        assert suite.tier == tier
        assert {entry.name for entry in suite.benchmarks} <= set(BENCHMARKS)
    assert set(load_rule_file(SHIPPED / "demo-rule.yaml").components) == {"demo-choice"}
