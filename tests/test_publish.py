"""A closed run becomes its report; anything else does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eval_tasks.errors import DataError, UserError
from eval_tasks.guard import guard
from eval_tasks.publish import build_view, comparison_view, publish
from eval_tasks.store import Store
from tests.answered import answered, checkpoint
from tests.planned import NOW

__all__ = ["answered", "checkpoint"]


@pytest.fixture
def run_id(answered, store: Store) -> str:
    made: str = answered()
    guard(store, run_id=made, now=NOW)
    return made


def test_a_report_is_two_blobs_and_two_rows_and_publishing_again_changes_nothing(store: Store, run_id: str) -> None:
    first = publish(store, run_id=run_id, now=NOW, notes="looked at by hand")
    assert publish(store, run_id=run_id, now=NOW, notes="looked at by hand") == first
    assert {(r.format, r.blob_digest) for r in store.catalog.reports(run_id)} == {
        ("html", first.html_blob),
        ("json", first.json_blob),
    }
    html = store.blobs.get(first.html_blob).decode()
    for words in ("looked at by hand", "colours", "colour-text", "colour-sums", run_id):
        assert words in html
    assert json.loads(store.blobs.get(first.json_blob))
    assert Path(first.html_uri.removeprefix("file://")).read_bytes() == html.encode()
    assert "colours" in first.terminal


@pytest.mark.parametrize("status", ["planned", "running", "incomplete", "gone", "failed"])
def test_a_run_that_is_not_closed_is_not_published(store: Store, run_id: str, status: str) -> None:
    store.catalog.update_run(run_id, status=status, reason="pods were lost")
    with pytest.raises(DataError, match=rf"run {run_id} is {status}, not closed \(pods were lost\): not published"):
        publish(store, run_id=run_id, now=NOW)
    assert store.catalog.reports(run_id) == []


def test_an_unknown_comparison_is_refused(store: Store, run_id: str) -> None:
    with pytest.raises(UserError, match="comparison"):
        publish(store, run_id=run_id, comparison_id="0" * 32, now=NOW)


def test_a_view_holds_what_the_catalog_has_of_the_run(store: Store, run_id: str) -> None:
    view = build_view(store, run_id=run_id)
    assert view.run is not None and view.run.run_id == run_id
    assert [b.name for b in view.benchmarks] == ["colours", "colour-text", "colour-sums"]
    assert view.guard == store.catalog.guard(run_id)
    assert (view.comparison, view.baseline, view.notes) == (None, None, ())


def test_a_comparison_is_shown_beside_the_scores_of_both_runs(answered, store: Store, run_id: str) -> None:
    from eval_tasks.compare import compare

    other = answered(repeat=1)
    guard(store, run_id=other, now=NOW)
    comparison = compare(store, run_id, other)
    view = comparison_view(store, comparison)
    assert view.baseline is not None and view.baseline.run_id == other
    assert [m.score for m in view.baseline_measurements] == [m.score for m in view.measurements]
    alone = comparison_view(None, comparison)
    assert (alone.run, alone.comparison) == (None, comparison)
