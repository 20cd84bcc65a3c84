"""A selection in a report: the best, its luck, its set, what the other half says."""

from __future__ import annotations

import dataclasses

import jsonschema

from eval_tasks.records import BenchmarkSelection, Candidate, Confirmation, MeasuredNoise, Selection
from eval_tasks.report import ReportView, report_html, report_json, report_schema, terminal_text
from eval_tasks.report.selections import sentences

BEST = Candidate(run_id="a" * 32, label="demo step 900", step=900, score=0.83, shrunk=0.824, in_set=True)
NEXT = Candidate(run_id="b" * 32, label="demo step 800", step=800, score=0.82, shrunk=0.821, in_set=False)
FOUND = BenchmarkSelection(
    benchmark="mmlu-pro",
    metric="acc",
    unit="fraction",
    higher_is_better=True,
    n_items=2_000,
    candidates=(BEST, NEXT),
    optimism=0.0079,
    noise_sd=0.0035,
    spread_sd=0.004,
    confirmation=Confirmation(
        n_select=1_000,
        n_confirm=1_000,
        selected="demo step 900",
        score_select=0.84,
        score=0.82,
        ci95=(0.79, 0.84),
        against="demo step 800",
        delta=0.01,
        delta_ci95=(-0.01, 0.03),
        p=0.3,
    ),
    noise=MeasuredNoise(
        benchmark="mmlu-pro",
        metric="acc",
        unit="fraction",
        sd=0.0031,
        n_looks=20,
        last_step=900,
        seed_sd=0.006,
        seed_study="k5@1",
    ),
)
NONE = BenchmarkSelection(
    benchmark="gsm8k", metric="strict", unit="fraction", higher_is_better=True, not_selected="one run is left"
)
SELECTION = Selection(
    run_id="a" * 32, runs=("b" * 32, "a" * 32), alpha=0.05, benchmarks=(FOUND, NONE), notes=("a note",)
)


def test_every_rendering_says_how_much_of_the_best_is_luck(view: ReportView) -> None:
    shown = dataclasses.replace(view, selection=SELECTION)
    html, text = report_html(shown), terminal_text(shown, width=400)
    for said in (
        "the best of 2 equal checkpoints would look 0.8 points better than it is. Expected on new items: 82.4.",
        "1 of 2 is not shown to be worse than the best (95 % for all at once): demo step 900.",
        "On the other 1,000: 82.0 [79.0, 84.0]; minus demo step 800 +1.0 [-1.0, +3.0], p = 0.300.",
        "wobble by 0.31 points around their trend (SD over 20 looks, item noise apart); seed prior 0.60 points (k5@1).",
        "gsm8k strict: not selected: one run is left.",
        "a note",
    ):
        assert said in html and said in text, said
    assert "Selection among 2 checkpoints" in html and "Selection among 2 checkpoints" in text
    jsonschema.validate(report_json(shown), report_schema())


def test_a_report_without_a_selection_says_nothing_of_one(view: ReportView) -> None:
    assert "Selection among" not in report_html(view) + terminal_text(view)


def test_a_loss_is_said_in_its_unit() -> None:
    loss = dataclasses.replace(FOUND, unit="bits per byte", confirmation=None, noise=None)
    assert "0.0079 bits per byte better than it is" in sentences(loss)[0]
