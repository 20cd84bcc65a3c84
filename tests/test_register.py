from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_tasks.digests import digest_bytes
from eval_tasks.errors import DriftError, EvalError, UserError
from eval_tasks.register import register_benchmark, register_rule, register_shipped, register_suite
from eval_tasks.registry import shipped_benchmarks
from eval_tasks.store import Store
from tests.planned import write_checkpoint

Row = dict[str, Any]
Write = Callable[..., Path]

NOW = "2026-01-01T00:00:00+00:00"
ROWS: list[Row] = [
    {"item_id": f"i{n}", "question": f"{n}+1", "options": [str(n + 1), str(n)], "answer": 0, "subject": "ab"[n % 2]}
    for n in range(12)
]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes rows and a benchmark file; changes replace top-level fields, None takes one away."""

    def write(name: str = "toy", rows: list[Row] = ROWS, **changes: Any) -> Path:
        data = "\n".join(json.dumps(row) for row in rows).encode()
        (tmp_path / f"{name}.jsonl").write_bytes(data)
        spec: Row = {
            "name": name,
            "version": "1",
            "kind": "choice",
            "licence": "MIT",
            "source": {"uri": f"{name}.jsonl", "blake3": digest_bytes(data)},
            "item": {"id": "item_id", "target": "answer", "stratum": "subject"},
            "prompt": {"item": "Q: {{ question }}", "choices": "options"},
            "scorer": {"name": "choice"},
            "primary_metric": "acc",
            **changes,
        }
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(spec), "utf-8")
        return path

    return write


def _stored_files(tmp_path: Path) -> list[Path]:
    return sorted(p for p in (tmp_path / "home" / "store").rglob("*") if p.is_file())


def test_a_benchmark_is_stored_with_its_items(store: Store, write: Write) -> None:
    few_shot = {"k": 2, "match": "subject"}
    benchmark = register_benchmark(store, write(few_shot=few_shot, plausible_range={"acc": [0.1, 1.0]}), NOW)
    assert store.catalog.benchmark("toy") == benchmark
    items = store.blobs.get_items(benchmark.items_blob)
    assert [i.item_id for i in items] == sorted(row["item_id"] for row in ROWS)
    assert (items[0].target, items[0].stratum, benchmark.n_items) == (0, "a", 12)
    assert benchmark.few_shot_blob is not None
    shots = store.blobs.get_items(benchmark.few_shot_blob)
    assert [s.fields["item_id"] for s in shots] == [row["item_id"] for row in ROWS]
    assert (benchmark.created_at, benchmark.scorer.version) == (NOW, "1")
    assert benchmark.plausible_range == {"acc": (0.1, 1.0)}


def test_registering_again_changes_nothing(store: Store, write: Write, tmp_path: Path) -> None:
    first = register_benchmark(store, write(), NOW)
    before = _stored_files(tmp_path)
    assert register_benchmark(store, write(), "2026-02-02T00:00:00+00:00") == first
    assert _stored_files(tmp_path) == before
    assert len(store.catalog.benchmarks()) == 1


def test_the_identity_moves_with_items_template_and_scorer_only(store: Store, write: Write) -> None:
    base = register_benchmark(store, write(), NOW)
    same = register_benchmark(store, write(version="2", rows=ROWS[::-1], description="words"), NOW)
    assert same.benchmark_id == base.benchmark_id
    longer = register_benchmark(store, write(version="3", rows=[*ROWS, {**ROWS[0], "item_id": "new"}]), NOW)
    assert (longer.items_digest != base.items_digest, longer.template_digest) == (True, base.template_digest)
    prompt = {"item": "Q: {{ question }}", "choices": "options", "stop": ["x"]}
    other = register_benchmark(store, write(version="4", prompt=prompt), NOW)
    assert (other.template_digest != base.template_digest, other.items_digest) == (True, base.items_digest)
    assert len({base.benchmark_id, longer.benchmark_id, other.benchmark_id}) == 3


def test_other_content_under_the_same_version_is_refused_and_leaves_nothing(
    store: Store, write: Write, tmp_path: Path
) -> None:
    register_benchmark(store, write(), NOW)
    before = _stored_files(tmp_path)
    with pytest.raises(UserError, match="registered with other content: items_digest"):
        register_benchmark(store, write(rows=ROWS[1:]), NOW)
    assert _stored_files(tmp_path) == before


def test_whole_sentences_may_be_choices_of_an_empty_prompt(store: Store, write: Write) -> None:
    """As in BLiMP: nothing stands before the choices, on purpose."""
    prompt = {"item": "", "choices": "options"}
    assert register_benchmark(store, write(prompt=prompt), NOW).template.item == ""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"primary_metric": "acc_nrom"}, "no metric 'acc_nrom'; close: 'acc_norm'"),
        ({"plausible_range": {"accuracy": [0, 1]}}, "no metric 'accuracy'"),
        ({"scorer": {"name": "choise"}}, "no scorer 'choise'; close: 'choice'"),
        ({"scorer": {"name": "gsm8k"}}, "not kind 'choice'"),
        ({"scorer": {"name": "choice", "parameters": {"x": 1}}}, "no parameter 'x'"),
        (
            {"prompt": {"item": "{{ qestion }}", "choices": "options"}},
            r"item 'i\d+', prompt\.item: .*close: 'question'",
        ),
        ({"prompt": {"item": " ", "choices": "options"}}, "the prompt is empty"),
        ({"prompt": {"item": "x", "choices": "opts"}}, "no column 'opts'"),
        ({"few_shot": {"k": 50}}, "there are 11 examples"),
        ({"rows": [{**ROWS[0], "answer": 2}]}, "row 1: gold 2 is no choice"),
        ({"rows": [ROWS[0], ROWS[0]]}, "stand more than once"),
        ({"source": {"uri": "toy.jsonl", "blake3": "0" * 64}}, "not the data that was pinned"),
    ],
)
def test_wrong_input_leaves_nothing(store: Store, write: Write, tmp_path: Path, changes: Row, message: str) -> None:
    with pytest.raises(EvalError, match=message) as error:
        register_benchmark(store, write(**changes), NOW)
    assert isinstance(error.value, UserError | DriftError)
    assert store.catalog.benchmarks() == []
    assert _stored_files(tmp_path) == []


def test_what_looks_wrong_with_the_data_is_warned_of(
    store: Store, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="eval_tasks.register")
    rows = [{**row, "options": [" x", " y"], "answer": n % 2} for n, row in enumerate(ROWS)]
    register_benchmark(store, write("clean", rows=rows), NOW)
    assert caplog.messages == []
    rows = [{**row, "options": [*"xy"[:n], " z", *"xy"[n:]], "answer": n} for n, row in enumerate(ROWS[:3])]
    register_benchmark(store, write(rows=rows), NOW)
    (message,) = caplog.messages
    assert message.startswith("benchmark toy: gold_blanks: in 3 of 3 items the gold choice alone begins")


def test_prompts_beyond_a_checkpoint_s_context_are_told_or_refused(
    store: Store, write: Write, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint = write_checkpoint(tmp_path / "checkpoint")
    rows = [{**row, "answer": n % 2} for n, row in enumerate(ROWS)]
    rows[3] = {**rows[3], "question": "long " * 5_000}
    caplog.set_level(logging.WARNING, logger="eval_tasks.register")
    register_benchmark(store, write(rows=rows), NOW, checkpoint_dir=checkpoint)
    (message,) = caplog.messages
    assert "long_prompts: 1 of 12 prompts are beyond the" in message and message.endswith("will be cut: 'i3'")
    refusing = write("strict", rows=rows, on_long_prompt="refuse")
    with pytest.raises(UserError, match="i3"):
        register_benchmark(store, refusing, NOW, checkpoint_dir=checkpoint)
    assert [b.name for b in store.catalog.benchmarks()] == ["toy"]


def _suite(tmp_path: Path, *entries: Row, **changes: Any) -> Path:
    path = tmp_path / "suite.yaml"
    spec = {"name": "s", "version": "1", "tier": "health", "benchmarks": list(entries), **changes}
    path.write_text(yaml.safe_dump(spec), "utf-8")
    return path


def test_a_suite_resolves_its_benchmarks(store: Store, write: Write, tmp_path: Path) -> None:
    old = register_benchmark(store, write(), NOW)
    new = register_benchmark(store, write(version="2", rows=ROWS[1:]), NOW)
    suite = register_suite(store, _suite(tmp_path, {"name": "toy", "n_items": 5, "seed": 3}))
    (entry,) = suite.entries
    assert (entry.benchmark_id, entry.version, entry.n_items, entry.seed) == (new.benchmark_id, "2", 5, 3)
    assert (
        store.catalog.suite("s")
        == suite
        == register_suite(store, _suite(tmp_path, {"name": "toy", "n_items": 5, "seed": 3}))
    )
    pinned = register_suite(store, _suite(tmp_path, {"name": "toy", "version": "1"}, version="2"))
    assert pinned.entries[0].benchmark_id == old.benchmark_id


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([{"name": "tyo"}], "no benchmark 'tyo'.*; close: 'toy'"),
        ([{"name": "toy", "version": "9"}], "no version of benchmark 'toy' '9'"),
        ([{"name": "toy", "n_items": 13}], "n_items of 'toy' is 13, and it has 12 items"),
        ([{"name": "toy"}, {"name": "twin"}], "'twin' has the same content"),
    ],
)
def test_wrong_suites(store: Store, write: Write, tmp_path: Path, entries: list[Row], message: str) -> None:
    register_benchmark(store, write(), NOW)
    register_benchmark(store, write("twin"), NOW)
    with pytest.raises(UserError, match=message):
        register_suite(store, _suite(tmp_path, *entries))
    assert store.catalog.suites() == []


def _rule(tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "rule.yaml"
    spec = {"name": "r", "kind": "superiority", "metric": "acc", "components": {"toy": 1.0}, **changes}
    path.write_text(yaml.safe_dump(spec), "utf-8")
    return path


def test_a_rule_keeps_its_first_time(store: Store, write: Write, tmp_path: Path) -> None:
    register_benchmark(store, write(), NOW)
    rule = register_rule(store, _rule(tmp_path), NOW)
    assert rule.registered_at == NOW
    assert register_rule(store, _rule(tmp_path), "2026-02-02T00:00:00+00:00") == rule == store.catalog.rule("r")
    with pytest.raises(UserError, match="registered with other content"):
        register_rule(store, _rule(tmp_path, alpha=0.01), NOW)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"components": {"tyo": 1.0}}, "close: 'toy'"),
        ({"metric": "strict"}, "no metric 'strict'"),
        ({"direction": "lower"}, "is better when higher"),
    ],
)
def test_wrong_rules(store: Store, write: Write, tmp_path: Path, changes: Row, message: str) -> None:
    register_benchmark(store, write(), NOW)
    with pytest.raises(UserError, match=message):
        register_rule(store, _rule(tmp_path, **changes), NOW)
    assert store.catalog.rules() == []


def test_all_that_ships_can_be_registered_twice(store: Store) -> None:
    first = register_shipped(store, NOW)
    assert [b.name for b in first] == list(shipped_benchmarks())
    assert register_shipped(store, "2026-02-02T00:00:00+00:00") == first
