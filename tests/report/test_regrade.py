"""What a regrading moved, as JSON, for a terminal and as a page."""

from __future__ import annotations

import json
from dataclasses import replace

from eval_tasks.records.diagnosis import FlippedItem
from eval_tasks.records.regrade import GroupMove, MovedScores
from eval_tasks.report import regrade_html, regrade_json, regrade_text

GROUP = GroupMove(
    group="",
    old=0.5,
    n_old=100,
    old_ci95=(0.4, 0.6),
    new=0.45,
    n_new=98,
    new_ci95=(0.35, 0.55),
    n_pairs=98,
    delta=-0.05,
    ci95=(-0.09, -0.01),
    lost=6,
    gained=1,
)
MOVED = MovedScores(
    run_id="a" * 32,
    label="tiny step 7",
    benchmark="sums",
    version="1",
    metric="strict",
    unit="fraction",
    higher_is_better=True,
    new_grader="judge/helpful@2+1a2b3c4d",
    old_grader="judge/helpful@1+0a0b0c0d",
    total=GROUP,
    p=0.0703125,
    by="category",
    groups=(replace(GROUP, group="algebra"), replace(GROUP, group="<b>", ci95=(-0.1, 0.1), lost=None, gained=None)),
    flipped=(FlippedItem(item_id="g1", lost=True, output_a="<script>\ud800", extracted_a="No", extracted_b="Yes"),),
    notes=("2 items have no score",),
)


def test_json_has_every_number_unrounded() -> None:
    document = regrade_json([MOVED])
    assert json.loads(json.dumps(document)) == document
    assert (document["schema"], document["schema_version"]) == ("checkpoint-eval/regrade", "1")
    [moved] = document["moved"]
    assert (moved["total"]["delta"], moved["p"], moved["groups"][0]["group"]) == (-0.05, 0.0703125, "algebra")


def test_a_terminal_reads_both_scores_with_n_and_the_difference() -> None:
    text = regrade_text([MOVED], width=200)
    assert "judge/helpful@1+0a0b0c0d: 50.0 [40.0, 60.0] (n = 100)" in text
    assert "judge/helpful@2+1a2b3c4d: 45.0 [35.0, 55.0] (n = 98)" in text
    assert "new - old -5.0 [-9.0, -1.0], p = 0.070, on 98 items that both scored; 6 lost, 1 gained." in text
    assert "flipped: g1 (lost)" in text and "2 items have no score" in text
    assert max(len(line) for line in regrade_text([MOVED], width=100).splitlines()) <= 100


def test_what_was_not_compared_says_why() -> None:
    bare = replace(MOVED, old_grader="", not_compared="nobody scored these outputs before", groups=(), flipped=())
    assert "Not compared: nobody scored these outputs before." in regrade_text([bare])
    assert "Not compared" in regrade_html([bare])


def test_the_page_is_self_contained_escaped_and_the_same_each_time() -> None:
    page = regrade_html([MOVED, replace(MOVED, label="tiny step 8")])
    assert page == regrade_html([MOVED, replace(MOVED, label="tiny step 8")])
    assert "<script" not in page and "http" not in page.replace("http-equiv", "")
    assert "&lt;script&gt;" in page and "&lt;b&gt;" in page
    for wanted in (
        "tiny step 7",
        "tiny step 8",
        "algebra",
        "lost: right by the old grader",
        "-5.0",
        "6 lost, 1 gained",
    ):
        assert wanted in page


def test_a_page_of_many_runs_keeps_all_in_its_first_table() -> None:
    page = regrade_html([replace(MOVED, label=f"tiny step {n}") for n in range(45)])
    assert "tiny step 44" in page and "5 more are in this table alone" in page
    assert page.count("<section id=") == 41
