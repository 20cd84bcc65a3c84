"""What differs between two versions, each difference in its own place, and the level of comparison it leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_tasks.compare import compare, diagnose
from eval_tasks.compare.compatibility import compatibility
from eval_tasks.compare.instruments import InstrumentDifference, difference
from eval_tasks.digests import digest_bytes
from eval_tasks.errors import NotComparableError
from eval_tasks.register import register_benchmark
from eval_tasks.store import Store
from tests.compare.stored import scores_of, stored_run

ROWS = [{"item_id": f"i{n}", "question": f"{n}+1?", "answer": str(n + 1)} for n in range(4)]
BASE: dict[str, Any] = {
    "kind": "generation",
    "licence": "MIT",
    "item": {"id": "item_id", "target": "answer"},
    "prompt": {"item": "Q: {{ question }}\nA:", "stop": ["\n"], "target": "{{ answer }}"},
    "few_shot": {"k": 1},
    "scorer": {"name": "exact_match"},
    "primary_metric": "exact_match",
}


@pytest.fixture
def changed(store: Store, tmp_path: Path) -> Any:
    """`changed(rows, **changes)`: the difference from the base to a version 2 with those changes."""

    def register(version: str, rows: list[dict[str, Any]], **changes: Any) -> Any:
        data = tmp_path / f"rows-{version}.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        source = {"uri": data.name, "blake3": digest_bytes(data.read_bytes())}
        path = tmp_path / f"toy-{version}.yaml"
        path.write_text(yaml.safe_dump({"name": "toy", "version": version, "source": source, **BASE, **changes}))
        return register_benchmark(store, path, "2026-01-01T00:00:00+00:00")

    def build(rows: list[dict[str, Any]] = ROWS, **changes: Any) -> InstrumentDifference:
        a, b = register("1", ROWS), register("2", rows, **changes)
        found = difference(store, a, b)
        if found.level != "NONE":
            assert found.level == compatibility(a, b)[0]
        return found

    return build


def test_the_same_content_is_the_same_instrument(changed: Any) -> None:
    found = changed()
    assert (found.level, found.n_same, found.template, found.scorer) == ("SCORE", 4, [], [])
    assert all(found.digests.values()) and not found.settings and not found.shots_changed


def test_a_changed_prompt_shows_its_line(changed: Any) -> None:
    found = changed(prompt={**BASE["prompt"], "item": "Q: {{ question }}\nAnswer:"})
    assert (found.level, found.digests["template_digest"], found.digests["items_digest"]) == ("PAIRED", False, True)
    assert "-  A:" in found.template and "+  Answer:" in found.template
    assert not any("question" in line for line in found.template if line[0] in "+-" and line[:3] not in ("+++", "---"))


def test_items_are_told_apart(changed: Any) -> None:
    rows = [*ROWS[1:3], {**ROWS[3], "answer": "5"}, {**ROWS[0], "item_id": "new"}]
    found = changed(rows)
    assert (found.level, found.added, found.removed, found.changed) == ("PARTIAL", ["new"], ["i0"], ["i3"])
    assert (found.n_same, found.shots_changed, found.digests["items_digest"]) == (2, True, False)
    assert found.not_paired == ["i3"]


def test_a_column_more_leaves_the_items_what_they_were(changed: Any) -> None:
    found = changed([{**row, "source": "book"} for row in ROWS])
    assert (found.level, len(found.changed), found.not_paired) == ("PARTIAL", 4, [])


def test_other_items_under_the_same_ids_are_none(changed: Any) -> None:
    assert changed([{**row, "answer": "0"} for row in ROWS]).level == "NONE"


def test_a_comparison_of_runs_pairs_what_the_difference_says(changed: Any, store: Store) -> None:
    rows = [*ROWS[1:3], {**ROWS[3], "answer": "5"}, {**ROWS[0], "item_id": "new"}]
    found = changed(rows)
    runs = []
    for number, ids in ((1, ["i0", "i1", "i2", "i3"]), (2, ["i1", "i2", "i3", "new"])):
        version = store.catalog.benchmark("toy", str(number))
        scores = scores_of(version, [1.0, 0.0, 1.0, 1.0], metric="exact_match", item_ids=ids)
        runs.append(stored_run(store, number, (version, scores)).run_id)
    test = compare(store, *runs).tests[0]
    assert (test.compatibility, test.n_pairs, test.n_attempted) == (found.level, found.n_same, 6)
    assert "1 items have another question or answer under the same id, and make no pairs: i3" in test.notes
    assert diagnose(store, *runs)[0].n_pairs == found.n_same


def test_a_comparison_without_a_pair_is_refused_as_the_difference_says(changed: Any, store: Store) -> None:
    assert changed([{**row, "answer": "0"} for row in ROWS]).level == "NONE"
    runs = []
    for number in (1, 2):
        version = store.catalog.benchmark("toy", str(number))
        scores = scores_of(version, [1.0, 0.0, 1.0, 1.0], metric="exact_match", item_ids=["i0", "i1", "i2", "i3"])
        runs.append(stored_run(store, number, (version, scores)).run_id)
    with pytest.raises(NotComparableError, match="items_digest differs"):
        compare(store, *runs)


def test_no_item_in_common_is_none(changed: Any) -> None:
    assert changed([{**row, "item_id": f"n{n}"} for n, row in enumerate(ROWS)]).level == "NONE"


def test_the_scorer_and_the_settings_have_their_place(changed: Any) -> None:
    found = changed(scorer={"name": "exact_match", "parameters": {"ignore_case": True}}, chance_level=0.1)
    assert (found.level, found.digests["scorer_digest"]) == ("PAIRED", False)
    assert "+  ignore_case: true" in found.scorer
    assert found.settings == {"chance_level": (None, 0.1)}


def test_longer_answers_are_other_scores(changed: Any) -> None:
    found = changed(max_tokens=512)
    assert all(found.digests.values())
    assert (found.level, found.settings) == ("PAIRED", {"max_tokens": (256, 512)})
