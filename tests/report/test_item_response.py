"""How abilities and items read: a column only where there is one, and always whose weights they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eval_tasks.errors import UserError
from eval_tasks.records import (
    Ability,
    AbilityDifference,
    CalibratedItem,
    Calibration,
    CalibrationRun,
    Comparison,
    ItemReport,
)
from eval_tasks.report import ReportView, report_html, report_json, tables, terminal_text
from eval_tasks.report.item_response import calibration_sentences, item_table, shown_texts
from tests.report.conftest import measurement, paired_test

MEASURED = Ability(
    calibration="mmlu@1/2", calibration_id="c" * 32, theta=0.84, se=0.07, ci95=(0.7, 0.98), n=480, gain=1.12
)
APART = AbilityDifference(
    benchmark="mmlu",
    metric="acc",
    calibration="mmlu@1/2",
    calibration_id="c" * 32,
    theta_a=0.84,
    theta_b=0.6,
    delta=0.24,
    se=0.06,
    ci95=(0.12, 0.36),
    n=480,
)


def test_a_scorecard_has_abilities_only_where_one_was_measured():
    plain, measured = measurement("arc", "acc", 0.6, 0.04), measurement("mmlu", "acc", 0.7, 0.04, ability=MEASURED)
    assert "Ability" not in [c.heading for c in tables.scorecard((plain,), "Scores").columns]
    table = tables.scorecard((plain, measured), "Scores")
    at = [c.heading for c in table.columns].index("Ability")
    assert [row[at] for row in table.rows] == ["–", "+0.84 ± 0.07; by mmlu@1/2"]
    withheld = replace(measured, ability=Ability(calibration="", calibration_id="", note="made on this checkpoint too"))
    assert tables.scorecard((withheld,), "Scores").rows[0][at] == "made on this checkpoint too"


def comparison(*abilities: AbilityDifference) -> Comparison:
    return Comparison(
        run_a="a" * 32,
        run_b="b" * 32,
        label_a="new",
        label_b="old",
        tests=(paired_test("mmlu", "acc", 0.03, 0.02), paired_test("arc", "acc", 0.01, 0.02)),
        n_expected_by_chance=0.1,
        alpha=0.05,
        abilities=abilities,
    )


def test_a_comparison_has_the_difference_beside_the_tests_and_says_what_it_is_not():
    assert "Δ ability" not in [c.heading for c in tables.tests(comparison()).columns]
    table = tables.tests(comparison(APART))
    at = [c.heading for c in table.columns].index("Δ ability")
    assert {row[0].split()[0]: row[at] for row in table.rows} == {
        "mmlu": "+0.24 [+0.12, +0.36]; by mmlu@1/2",
        "arc": "–",
    }
    assert len({len(row) for row in table.rows} | {len(table.columns)}) == 1
    view = ReportView(comparison=comparison(APART))
    for text in (terminal_text(view), report_html(view)):
        flat = " ".join(text.split())
        assert "+0.24" in flat and "no verdict, rule or selection uses them" in flat
    assert "no verdict, rule or selection" not in report_html(ReportView(comparison=comparison()))


def item(item_id: str, *flags: str, **changes: object) -> CalibratedItem:
    fields: dict[str, object] = {
        "n_runs": 60,
        "n_groups": 40,
        "share": 0.25,
        "share_ci95": (0.14, 0.4),
        "discrimination": -0.8,
        "discrimination_se": 0.3,
        "link": -0.6,
        "link_ci95": (-0.77, -0.35),
        "q": 0.002,
        "common_wrong": "C",
        "n_common_wrong": 41,
    }
    return CalibratedItem(item_id=item_id, flags=flags, **{**fields, **changes})  # type: ignore[arg-type]


@pytest.fixture
def report() -> ItemReport:
    calibration = Calibration(
        benchmark="mmlu",
        benchmark_version="1",
        benchmark_id="b" * 32,
        metric="acc",
        grader="choice@1",
        runs=tuple(CalibrationRun(run_id=f"{k:032x}", checkpoint_id="", group=f"g{k % 40}") for k in range(60)),
        n_items=500,
        n_calibrated=480,
        n_flagged={"negative_discrimination": 1, "below_chance": 0, "too_hard": 0, "too_easy": 1},
        reliability=0.93,
        rounds=17,
        items_blob="d" * 64,
        notes=("the 60 checkpoints are of 40 training runs",),
        version=2,
        created_at="2026-01-31T12:00:00+00:00",
    )
    items = (
        item("q<1>", "negative_discrimination"),
        item("q2", "too_easy", share=1.0, discrimination=None, discrimination_se=None, link=None, q=None,
             common_wrong=None),
    )  # fmt: skip
    return ItemReport(calibration=calibration, items=items, n_listed=7, texts={"q<1>": ("What <b>is</b> it?", "A")})


def test_what_was_calibrated_and_what_it_found(report):
    said = " ".join(calibration_sentences(report.calibration))
    assert "mmlu@1/2: two-parameter logistic model of acc (choice@1) on 60 checkpoints of 40 training runs" in said
    assert "480 of 500 items have weights" in said and "The 60 checkpoints are of 40 training runs." in said


def test_each_item_has_its_n_and_intervals(report):
    table = item_table(report)
    assert table.caption == "Items to look at: the first 2 of 7"
    assert table.rows[0] == (
        "q<1>",
        "likely mislabelled: abler runs get it wrong",
        "25.0",
        "[14.0, 40.0]",
        "40 (60 runs)",
        "-0.80 ± 0.30",
        "-0.60 [-0.77, -0.35]",
        "0.0020",
        "C (41 of 60 runs)",
    )
    assert table.rows[1][5:] == ("–", "–", "–", "")
    assert table.marked == {0}
    assert dict(shown_texts(report)[0].parts) == {
        "Item": "What <b>is</b> it?",
        "Gold": "A",
        "Common wrong answer": "C (41 of 60 runs)",
    }


def test_the_page_of_an_item_report_stands_alone(report):
    view = ReportView(item_report=report)
    html = report_html(view)
    assert html.count("<title>") == 1 and "items of mmlu 1 over 60 checkpoints" in html
    assert "What &lt;b&gt;is&lt;/b&gt; it?" in html and "q&lt;1&gt;" in html
    assert 'href="#items"' in html and "Calibration mmlu@1/2" in html
    assert report_json(view)["item_report"]["n_listed"] == 7
    with pytest.raises(UserError, match="a report needs a run, a comparison or an item report"):
        ReportView()
