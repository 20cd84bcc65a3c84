"""Flipped items on the page."""

from __future__ import annotations

import dataclasses

from eval_tasks.records.diagnosis import Diagnosis, FlippedItem, GroupedFlips, GroupFlips
from eval_tasks.report import ReportView, report_html
from eval_tasks.report.flips import group_table, sentences, shown_diagnoses

GROUPS = GroupedFlips(
    by="category",
    n_groups=2,
    groups=(
        GroupFlips(group="sums <b>", n=50, lost=12, gained=1, p=0.002, q=0.004),
        GroupFlips(group="prose", n=50, lost=1, gained=1, p=1.0, q=1.0),
    ),
    p_flips=0.0004,
    p_direction=0.3,
)
ITEM = FlippedItem(item_id="i1", lost=True, category="sums", gold="4", output_a="<script>5", output_b="4")
FOUND = Diagnosis(
    run_a="a", run_b="b", benchmark="maths", metric="acc", n_pairs=100, lost=13, gained=2, by=(GROUPS,), items=(ITEM,)
)


def test_sentences_say_how_many_and_whether_they_concentrate() -> None:
    first, second = sentences(FOUND)
    assert first == "15 of 100 items flipped: 13 lost (only B right), 2 gained (only A right)."
    assert "by category, flips concentrate in some (p = 0.0004), and losses are spread as the flips are" in second


def test_rows_that_pass_adjustment_are_marked() -> None:
    table = group_table(FOUND, GROUPS)
    assert table.marked == {0} and table.rows[0][1:5] == ("50", "12", "1", "-11")


def test_the_page_escapes_outputs_and_stays_small(view: ReportView) -> None:
    html = report_html(dataclasses.replace(view, diagnoses=(FOUND,)))
    assert "Items that flipped" in html and "&lt;script&gt;5" in html and "<script>" not in html
    long = dataclasses.replace(FOUND, items=(dataclasses.replace(ITEM, output_a="x" * 500_000),) * 20)
    assert len(report_html(dataclasses.replace(view, diagnoses=(long,)))) < len(html) + 80_000
    assert "Items that flipped" not in report_html(view)


def test_what_was_not_diagnosed_says_why() -> None:
    (shown,) = shown_diagnoses([Diagnosis(run_a="a", run_b="b", benchmark="x", metric="bpb", not_diagnosed="a loss")])
    assert shown.sentences == ("Not diagnosed: a loss.",) and shown.items == () and shown.tables == ()


def test_an_item_without_texts_is_a_line_not_an_empty_box(view: ReportView) -> None:
    bare = FlippedItem(item_id="q7", lost=True)
    html = report_html(dataclasses.replace(view, diagnoses=(dataclasses.replace(FOUND, items=(bare,)),)))
    assert "<p>q7 (lost: B right, A wrong)</p>" in html
    assert "<summary>q7" not in html
