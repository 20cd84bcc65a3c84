"""Sets of labelled outputs: what is read, what is kept, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.errors import UserError
from eval_tasks.graders.agreement_sets import SAMPLE, items_of, items_of_file, make_set
from eval_tasks.graders.raters import ONE_RATER, human_agreement, people_say
from eval_tasks.store import Store

NOW = "2026-01-01T00:00:00+00:00"


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def row(item_id: str = "i1", rater: str = "ann", label: object = 1, **more: str) -> dict[str, Any]:
    return {"item_id": item_id, "rater": rater, "label": label, "output": "42", **more}


def test_the_shipped_sample_has_two_raters_who_differ_in_every_category() -> None:
    items = items_of_file(SAMPLE)
    assert len(items) == 64
    for category in ("arithmetic", "facts", "format", "reasoning"):
        ((a, b, found),) = human_agreement([i for i in items if i.category == category]).pairs
        assert (a, b, found.n) == ("first", "second", 16)
        assert 0.4 < (found.kappa or 0) < 1


def test_a_row_per_label_makes_one_item(tmp_path: Path) -> None:
    path = write(
        tmp_path / "labels.jsonl",
        row(category="maths", prompt="6 x 7?", target="42"),
        {"item_id": "i1", "rater": "ben", "label": "wrong"},
    )
    (item,) = items_of_file(path)
    assert dict(item.labels) == {"ann": 1.0, "ben": 0.0}
    assert (item.output, item.category, item.prompt, item.target) == ("42", "maths", "6 x 7?", "42")


def test_an_empty_output_is_an_output(tmp_path: Path) -> None:
    (item,) = items_of_file(write(tmp_path / "labels.jsonl", row() | {"output": ""}))
    assert item.output == ""


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row(), row(rater="ben") | {"output": "43"}], "line 2: another output of item 'i1'"),
        ([{"item_id": "i1", "rater": "ann", "label": 1}], "line 1: no field 'output'"),
        ([row(), row()], "rater 'ann' labelled item 'i1' twice"),
        ([row(label="perhaps")], "label 'perhaps'"),
        ([], "holds no labels"),
    ],
)
def test_rows_that_do_not_fit_are_named(tmp_path: Path, rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        items_of_file(write(tmp_path / "labels.jsonl", *rows))


def test_a_set_is_kept_once_and_never_changed(store: Store, tmp_path: Path) -> None:
    items = items_of_file(write(tmp_path / "labels.jsonl", row(), row("i2", label=0)))
    made = make_set(store, items, name="mine", now=NOW)
    again = make_set(store, list(reversed(items)), name="mine", now="2027-01-01T00:00:00+00:00")
    assert again == made == store.catalog.agreement_set("mine")
    assert items_of(store, made) == items
    with pytest.raises(UserError, match=r"'mine@1' is there with digest .* another version"):
        make_set(store, items[:1], name="mine", now=NOW)
    second = make_set(store, items[:1], name="mine", version="2", now=NOW)
    assert store.catalog.agreement_set("mine") == second
    assert store.catalog.agreement_set("mine@1") == made
    with pytest.raises(UserError, match=r"no agreement set 'mime'.*close: 'mine'"):
        store.catalog.agreement_set("mime")
    with pytest.raises(UserError, match="no version of agreement set 'mine' '3'"):
        store.catalog.agreement_set("mine@3")


def test_measurements_are_not_labels(store: Store, tmp_path: Path) -> None:
    rows = [{**row(f"i{n}"), "label": "", "score": n / 10} for n in range(21)]
    items = items_of_file(write(tmp_path / "labels.jsonl", *rows))
    with pytest.raises(UserError, match="21 different labels"):
        make_set(store, items, name="mine", now=NOW)


def test_half_a_surrogate_pair_is_kept_as_what_it_is(store: Store, tmp_path: Path) -> None:
    items = items_of_file(write(tmp_path / "labels.jsonl", row() | {"output": "\ud800 broken"}))
    made = make_set(store, items, name="mine", now=NOW)
    assert items_of(store, made)[0].output == "\ufffd broken"


def test_one_rater_has_nobody_to_agree_with(tmp_path: Path) -> None:
    items = items_of_file(write(tmp_path / "labels.jsonl", row(), row("i2", label=0)))
    found = human_agreement(items)
    assert (list(found.pairs), found.all_raters, found.note) == ([], None, ONE_RATER)
    assert people_say(items).tolist() == [1.0, 0.0]


def test_raters_who_share_no_output_are_told_apart_from_one_rater(tmp_path: Path) -> None:
    items = items_of_file(write(tmp_path / "labels.jsonl", row(), row("i2", "ben")))
    assert human_agreement(items).note == "no output has labels of two raters"


def test_three_raters_are_also_held_together(tmp_path: Path) -> None:
    said = {"i1": (1, 1, 1), "i2": (0, 0, 1), "i3": (0, 0, 0), "i4": (1, 0, 1), "i5": (1, 1, 1)}
    rows = [row(i, r, v) for i, votes in said.items() for r, v in zip(("ann", "ben", "cy"), votes, strict=True)]
    found = human_agreement(items_of_file(write(tmp_path / "labels.jsonl", *rows)))
    assert [(a, b) for a, b, _ in found.pairs] == [("ann", "ben"), ("ann", "cy"), ("ben", "cy")]
    assert found.all_raters is not None
    assert (found.all_raters.n, found.all_raters.n_raters) == (5, 3)
    assert found.all_raters.kappa == pytest.approx(0.44444, abs=1e-4)
