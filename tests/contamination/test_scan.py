"""From files to statuses: thresholds, limits, sections, shards, and what is recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from eval_tasks.contamination.corpus import register_corpus
from eval_tasks.contamination.rule import Rule, checked_rule
from eval_tasks.contamination.scan import close_scan, load_scan, plan_scan, run_scan, scan_shard
from eval_tasks.errors import DataError, UserError
from eval_tasks.records import ShardHits
from eval_tasks.store import Store
from tests.contamination.corpora import LATER, NOW, item, rows_of, scanned, sentence, table_of, write_jsonl


def test_shares_longest_span_documents_and_status(store: Store, tmp_path: Path) -> None:
    table = table_of(
        Rule(),
        item("whole", sentence(0, 30)),
        item("half", sentence(100, 30)),
        item("clean", sentence(200, 30)),
        item("short", sentence(300, 5)),
        item("tiny", "two words"),
    )
    texts = [f"see: {sentence(0, 30)}!", f"{sentence(100, 15)} other", f"so {sentence(300, 5)} and", "two words"]
    check, rows = scanned(store, write_jsonl(tmp_path / "web/a.jsonl", texts), table, id_field="id")
    assert check.rows == {
        "whole": "contaminated",
        "half": "clean",
        "clean": "clean",
        "short": "not_checkable",
        "tiny": "not_checkable",
    }
    assert rows["whole"]["question_share"] == [1.0, 1.0]
    assert rows["half"]["question_share"] == [8 / 23, 3 / 18]
    assert [rows[name]["longest_words"] for name in check.rows] == [30, 15, 0, 5, 0]
    assert [rows[name]["whole_question"] for name in check.rows] == [True, False, False, True, False]
    assert rows["whole"]["examples"] == [
        {
            "answer_near": False,
            "document": "d0",
            "file": "a.jsonl",
            "row": 1,
            "section": "question",
            "text": f"{sentence(0, 30)}!",
            "words": 30,
        }
    ]
    assert (check.n_documents, check.problems, check.corpus) == (4, {}, "web")
    assert store.catalog.contamination("bench") == [check]
    assert store.catalog.corpus("web").n_documents == 4


@pytest.mark.parametrize(("share", "status"), [(3 / 18, "contaminated"), (3 / 18 + 1e-9, "clean")])
def test_a_share_at_the_threshold_is_over_it(store: Store, tmp_path: Path, share: float, status: str) -> None:
    table = table_of(Rule(thresholds={13: share}), item("half", sentence(100, 30)))
    check, _ = scanned(store, write_jsonl(tmp_path / "a.jsonl", [sentence(100, 15)]), table)
    assert check.rows == {"half": status}


def test_white_space_case_and_punctuation_change_no_share(store: Store, tmp_path: Path) -> None:
    words = sentence(0, 40).split()
    wrapped = "\n".join(" ".join(words[n : n + 8]) for n in range(0, 40, 8))
    table = table_of(Rule(), item("i", sentence(0, 40)))
    for text in (wrapped, wrapped.upper(), ", ".join(words)):
        _, rows = scanned(store, write_jsonl(tmp_path / "a.jsonl", [text]), table)
        assert rows["i"]["question_share"] == [1.0, 1.0]


def test_question_choices_and_answer_are_told_apart(store: Store, tmp_path: Path) -> None:
    asked = item("i", sentence(0, 20), choices=(sentence(50, 9), sentence(70, 9)), answer=sentence(70, 9))
    table = table_of(Rule(), asked)
    texts = [f"{sentence(0, 20)} then {sentence(70, 9)}", sentence(0, 20), f"alone {sentence(50, 9)}"]
    _, rows = scanned(store, write_jsonl(tmp_path / "a.jsonl", texts), table)
    assert rows["i"]["question_share"][0] == rows["i"]["choices_share"][0] == rows["i"]["answer_share"][0] == 1.0
    assert (rows["i"]["n_documents"], rows["i"]["n_answer_near"]) == (2, 1)
    _, rows = scanned(store, write_jsonl(tmp_path / "a.jsonl", texts[2:]), table, now=LATER)
    assert (rows["i"]["status"], rows["i"]["choices_share"][0]) == ("clean", 0.5)


def test_boilerplate_of_the_corpus_does_not_count(store: Store, tmp_path: Path) -> None:
    licence = sentence(0, 12, "licence")
    table = table_of(Rule(document_limit=5), item("i", f"{sentence(0, 12)} {licence}"), item("whole", licence))
    texts = [f"{licence} {sentence(1000 * n, 20, 'page')}" for n in range(1, 7)]
    _, rows = scanned(store, write_jsonl(tmp_path / "a.jsonl", texts), table)
    assert (rows["i"]["status"], rows["i"]["question_share"][0], rows["i"]["longest_words"]) == ("clean", 0.0, 0)
    assert rows["i"]["n_boilerplate"] == 5
    # An item that all of these pages hold whole is no boilerplate: it was copied often.
    assert (rows["whole"]["status"], rows["whole"]["longest_words"]) == ("contaminated", 12)
    _, rows = scanned(store, write_jsonl(tmp_path / "a.jsonl", texts[1:]), table, now=LATER)
    assert rows["i"]["question_share"][0] == 5 / 17


def test_template_words_of_the_benchmark_do_not_count(store: Store, tmp_path: Path) -> None:
    stem = sentence(0, 12, "which")
    items = [item(f"i{n}", f"{stem} {sentence(100 * n, 12)}") for n in range(4)]
    texts = [f"quiz {stem} end"]
    path = write_jsonl(tmp_path / "a.jsonl", texts)
    _, rows = scanned(store, path, table_of(Rule(template_limit=3), *items))
    assert {row["question_share"][0] for row in rows.values()} == {0.0}
    _, rows = scanned(store, path, table_of(Rule(template_limit=4), *items), now=LATER)
    assert {row["question_share"][0] for row in rows.values()} == {5 / 17}


def test_a_passage_that_items_share_is_no_template(store: Store, tmp_path: Path) -> None:
    passage = sentence(0, 30)
    items = [item(f"i{n}", passage, sentence(100 * n, 9, "ask"), answer=f"yes{n}") for n in range(20)]
    path = write_jsonl(tmp_path / "a.jsonl", [passage])
    check, rows = scanned(store, path, table_of(Rule(), *items))
    assert set(check.rows.values()) == {"contaminated"}
    assert not any(row["whole_question"] for row in rows.values())


def test_shards_and_compression_change_nothing(store: Store, tmp_path: Path) -> None:
    table = table_of(Rule(document_limit=3), *(item(f"i{n}", sentence(n * 30, 30)) for n in range(5)))
    for n in range(6):
        texts = [f"{sentence(k * 11, 25)} and {sentence(n, 9, f'x{k}')}" for k in range(n, 12)]
        write_jsonl(tmp_path / f"web/{n}.jsonl{'.gz' if n % 2 else ''}", texts, compress=n % 2 == 1)
        write_jsonl(tmp_path / f"plain/{n}.jsonl", texts)
    one, rows = scanned(store, tmp_path / "web", table)
    assert one.n_documents == 57
    assert any(row["n_boilerplate"] for row in rows.values()) and rows["i0"]["status"] == "contaminated"
    for shard_bytes in (1, 2_000):
        assert scanned(store, tmp_path / "web", table, shard_bytes=shard_bytes)[0].details_blob == one.details_blob
    plain, of_plain = scanned(store, tmp_path / "plain", table)
    assert plain.rows == one.rows
    for name in ("longest_words", "n_documents", "n_boilerplate"):
        assert [row[name] for row in of_plain.values()] == [row[name] for row in rows.values()]


def test_a_scan_that_was_stopped_goes_on_and_ends_once(store: Store, tmp_path: Path) -> None:
    table = table_of(Rule(), item("i", sentence(0, 30)))
    for n in range(3):
        write_jsonl(tmp_path / f"web/{n}.jsonl", [sentence(n * 5, 20)])
    register_corpus(store, "web", str(tmp_path / "web"), now=NOW)
    scan, uri = plan_scan(store, "web", ["bench"], table.rule, shard_bytes=1)
    assert load_scan(store, uri) == scan and len(scan.shards) == 3
    first = scan_shard(store, scan, 1, table=table)
    with pytest.raises(DataError, match=r"2 of 3 shards are not done \(0, 2\)"):
        close_scan(store, scan, now=NOW, table=table)
    assert store.catalog.contamination("bench") == []
    (tmp_path / "web/1.jsonl").unlink()  # shard 1 is done, and is not read again
    assert scan_shard(store, scan, 1, table=table) == first
    (check,) = run_scan(store, scan, now=NOW, table=table)
    assert check.rows == {"i": "contaminated"} and check.problems == {}
    assert run_scan(store, scan, now=NOW, table=table) == [check]


def test_hits_of_another_table_are_refused(store: Store, tmp_path: Path) -> None:
    table = table_of(Rule(), item("i", sentence(0, 30)))
    register_corpus(store, "web", str(write_jsonl(tmp_path / "a.jsonl", ["text"])), now=NOW)
    scan, _ = plan_scan(store, "web", ["bench"], table.rule)
    hits: ShardHits = scan_shard(store, scan, 0, table=table)
    store.scans.put(replace(hits, table_digest="0" * 64))
    with pytest.raises(DataError, match="belong to another match table"):
        close_scan(store, scan, now=NOW, table=table)


def test_the_rule_is_part_of_a_check_and_of_its_name(store: Store, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [sentence(0, 10)])
    check, _ = scanned(store, path, table_of(Rule(), item("i", sentence(0, 10))))
    other, _ = scanned(store, path, table_of(Rule(thresholds={8: 0.9}), item("i", sentence(0, 10))), now=LATER)
    assert check.rule != other.rule and check.rule.startswith("words-1 n=8,13 ")
    assert store.catalog.contamination_check("bench", "web", check.rule) == check
    assert store.catalog.contamination("bench") == [other]
    assert rows_of(store, other)["i"]["n"] == [8]


@pytest.mark.parametrize(
    "rule",
    [Rule(thresholds={}), Rule(thresholds={1: 0.5}), Rule(thresholds={8: 0.0}), Rule(examples=0)],
)
def test_rules_that_mean_nothing_are_refused(rule: Rule) -> None:
    with pytest.raises(UserError):
        checked_rule(rule)


def test_a_shard_that_is_not_in_the_plan_is_refused(store: Store, tmp_path: Path) -> None:
    register_corpus(store, "web", str(write_jsonl(tmp_path / "a.jsonl", ["text"])), now=NOW)
    scan, _ = plan_scan(store, "web", ["bench"], Rule())
    with pytest.raises(UserError, match="shards 0 to 0, and no 7"):
        scan_shard(store, scan, 7)
    with pytest.raises(UserError, match="no scan plan"):
        load_scan(store, "f" * 64)
