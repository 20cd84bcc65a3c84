"""What a person's word does: to the gate, the reports of runs in doubt, and to another person who speaks at once."""

from __future__ import annotations

import threading

import pytest

from eval_tasks.aggregate import aggregate
from eval_tasks.determinism import clear, explain, mark_suspects
from eval_tasks.errors import UserError
from eval_tasks.publish import publish
from eval_tasks.records import Block
from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store
from tests.determinism.conftest import HOUR, Nights


@pytest.fixture
def evaluated(nights: Nights) -> str:
    """A run with a report. It is a night's here, which is one like any other but for its name."""
    run_id = nights.run(1).run_id
    aggregate(nights.store, run_id)
    publish(nights.store, run_id=run_id, notes="for the meeting", now=HOUR.format(1))
    return run_id


@pytest.fixture
def block(nights: Nights, evaluated: str) -> Block:
    fingerprint = nights.environment.env_fingerprint
    # Runs are closed by the real clock: a block whose times are earlier would hold none of them.
    block_id = nights.store.catalog.open_block(fingerprint, "rows differ", "2999-01-01T00:00:00+00:00")
    return nights.store.catalog.block(block_id)


def report(store: Store, run_id: str) -> tuple[str, dict[str, object]]:
    """The HTML and the JSON that were published last."""
    rows = store.catalog.reports(run_id)
    html = next(row for row in rows if row.format == "html")
    document = next(row for row in rows if row.format == "json")
    return store.blobs.get(html.blob_digest).decode(), store.blobs.get_json(document.blob_digest)


def test_reports_of_runs_in_doubt_say_so_until_they_are_cleared(nights: Nights, evaluated: str, block: Block) -> None:
    store = nights.store
    assert "SUSPECT" not in report(store, evaluated)[0]
    assert evaluated in {run.run_id for run in mark_suspects(store, block, "2999-01-01T00:00:00+00:00")}
    html, document = report(store, evaluated)
    assert "SUSPECT" in html and "rows differ" in html and "for the meeting" in html
    (sentence,) = document["suspect"]  # type: ignore[misc]
    assert block.block_id in sentence and "rows differ" in sentence
    explain(
        store, block.block_id, by="ada", reason="a bad card", outcome="runs suspect", now="2999-01-02T00:00:00+00:00"
    )
    assert "a bad card" in report(store, evaluated)[0]
    with pytest.raises(UserError, match="a name and a reason"):
        clear(store, block.block_id, [evaluated], by="ada", reason="", now="2999-01-03T00:00:00+00:00")
    cleared = clear(
        store, block.block_id, [evaluated[:12]], by="ada", reason="repeated", now="2999-01-03T00:00:00+00:00"
    )
    assert cleared == [evaluated]
    html, document = report(store, evaluated)
    assert "SUSPECT" not in html and document["suspect"] == [] and "for the meeting" in html
    with pytest.raises(UserError, match="is not suspect because of block"):
        clear(store, block.block_id, [evaluated], by="ada", reason="again", now="2999-01-04T00:00:00+00:00")


def test_a_block_whose_baseline_is_kept_leaves_no_doubt_on_a_report(
    nights: Nights, evaluated: str, block: Block
) -> None:
    mark_suspects(nights.store, block, "2999-01-01T00:00:00+00:00")
    explain(
        nights.store, block.block_id, by="ada", reason="x", outcome="baseline kept", now="2999-01-02T00:00:00+00:00"
    )
    assert "SUSPECT" not in report(nights.store, evaluated)[0]


@pytest.mark.parametrize(("by", "reason"), [("", "x"), ("ada", "  ")])
def test_no_explanation_without_a_name_and_a_reason(nights: Nights, block: Block, by: str, reason: str) -> None:
    with pytest.raises(UserError, match="a name and a reason"):
        explain(nights.store, block.block_id, by=by, reason=reason, outcome="runs suspect", now=HOUR.format(3))
    assert nights.store.catalog.open_blocks() == [block]


def test_of_two_people_at_once_one_wins_and_the_other_is_told(nights: Nights, block: Block, settings: Settings) -> None:
    told: list[str] = []
    both = threading.Barrier(2)

    def say(by: str) -> None:
        with open_store(settings) as store:
            both.wait()
            try:
                explain(store, block.block_id, by=by, reason=f"said {by}", outcome="runs suspect", now=HOUR.format(3))
            except UserError as error:
                told.append(str(error))

    people = [threading.Thread(target=say, args=(by,)) for by in ("ada", "bob")]
    for person in people:
        person.start()
    for person in people:
        person.join()
    winner = nights.store.catalog.block(block.block_id).explained_by
    assert winner in ("ada", "bob")
    (message,) = told
    assert f"was explained by {winner!r}" in message
