"""A look in a report: alarms stand out, the stated rate, the curve of losses, and what is not detected."""

from __future__ import annotations

import dataclasses
import json
import xml.etree.ElementTree as ET

import jsonschema
import pytest

from eval_tasks.records import CurvePoint, HealthFinding, HealthLook, LossCurve, MeasuredNoise, from_json
from eval_tasks.report import ReportView, report_html, report_json, report_schema, terminal_text
from eval_tasks.report.health import curve_figures, deviation, findings_table, noise_table
from eval_tasks.report.health_sentences import finding_sentence, health_verdict

LOSS = HealthFinding(
    detection="divergence",
    benchmark="web",
    metric="bits_per_byte",
    unit="bits per byte",
    against_step=800,
    observed=0.11,
    threshold=0.019,
    se=0.004,
    p=1e-12,
    alpha=1.6e-6,
    detectable=0.044,
    alarm=True,
    since_step=850,
)
SOUND = dataclasses.replace(LOSS, observed=-0.01, p=0.9, alarm=False, since_step=None)
UNTESTED = HealthFinding(detection="chance_level", benchmark="quiz", metric="acc", not_tested="no chance_level")
COLLAPSE = HealthFinding(
    detection="collapse",
    benchmark="quiz",
    metric="acc",
    subject="answer 'A'",
    against_step=800,
    observed=0.99,
    threshold=0.9,
    p=1e-20,
    alpha=1e-6,
    alarm=True,
    since_step=900,
)
LOOK = HealthLook(
    run_id="a" * 32,
    training_run="demo",
    step=900,
    look=12,
    alpha_per_run=0.01,
    horizon=1_440,
    findings=(LOSS, UNTESTED, COLLAPSE),
    noise=(
        MeasuredNoise(
            benchmark="web", metric="bits_per_byte", unit="bits per byte", sd=0.0031, n_looks=11, last_step=800
        ),
        MeasuredNoise(
            benchmark="quiz",
            metric="acc",
            unit="fraction",
            sd=None,
            n_looks=3,
            last_step=800,
            seed_sd=0.006,
            seed_study="k5@1",
        ),
    ),
    not_detected=("progress of any size",),
    notes=("step 800 ran elsewhere",),
)


def curve(n: int) -> LossCurve:
    points = tuple(
        CurvePoint(step=100 * k, run_id=f"{k:032x}", score=1 - k / 5_000, ci95=(0.9 - k / 5_000, 1.1 - k / 5_000))
        for k in range(1, n + 1)
    )
    return LossCurve(training_run="demo", benchmark="web", metric="bits_per_byte", unit="bits per byte", points=points)


def shown(view: ReportView, look: HealthLook = LOOK) -> ReportView:
    return dataclasses.replace(view, health=look, curves=(curve(9),))


def test_every_rendering_says_the_verdict_the_rate_and_the_numbers(view: ReportView) -> None:
    html, text = report_html(shown(view)), terminal_text(shown(view), width=400)
    for said in (
        "Health: 2 alarms: divergence in web; collapsed outputs in quiz, answer",
        "at most 1 of 100 training runs of 1,440 looks",
        "step 800 ran elsewhere",
    ):
        assert said in html and said in text, said
    assert "the held-out loss lies 0.1100 bits per byte above step 800" in text
    for said in (
        "ALARM, since step 850",
        "not tested: no chance_level",
        "0.0031 bits per byte",
        "k5@1",
        "progress of any size",
    ):
        assert said in html, said
    assert "Accuracy is not drawn over steps" in html


def test_a_report_without_a_look_says_nothing_of_health(view: ReportView) -> None:
    assert 'id="health"' not in report_html(view)
    assert "Health:" not in terminal_text(view)


def test_the_document_carries_the_look_and_the_curve(view: ReportView) -> None:
    document = report_json(shown(view))
    jsonschema.validate(document, report_schema())
    assert from_json(HealthLook, json.loads(json.dumps(document["health"]))) == LOOK
    assert len(document["loss_curves"][0]["points"]) == 9


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        (
            LOSS,
            "up to 0.0190 bits per byte is let pass (p = <0.0001 of 1.6e-06 that this test may spend, since step 850)",
        ),
        (SOUND, "divergence in web: no alarm: -0.0100 against step 800 (p = 0.900)."),
        (UNTESTED, "accuracy at chance in quiz: not tested: no chance_level."),
        (COLLAPSE, "99.0 % of all answers are one and the same; at step 800 at most 90.0 % were"),
    ],
)
def test_a_finding_is_a_sentence(finding: HealthFinding, said: str) -> None:
    assert said in finding_sentence(finding)


def test_sound_and_empty_looks_have_their_own_sentences() -> None:
    assert health_verdict(dataclasses.replace(LOOK, findings=(SOUND,))) == "Health: no alarm in 1 test."
    assert "nothing could be tested" in health_verdict(dataclasses.replace(LOOK, findings=(UNTESTED,)))


def test_alarms_are_marked_and_noise_stands_beside_the_seed_prior() -> None:
    assert findings_table(LOOK).marked == {0, 2}
    rows = noise_table(LOOK.noise).rows
    assert rows[0][1:3] == ("0.0031 bits per byte", "11 looks up to step 800")
    assert rows[1][1:] == ("–", "not yet: 3 earlier looks, 8 are needed", "0.60 points", "k5@1")
    assert deviation(None, "fraction") == "–"


def test_a_curve_needs_two_points_and_a_long_one_is_thinned() -> None:
    assert curve_figures([curve(1)]) == []
    (figure,) = curve_figures([curve(1_440)])
    assert "Drawn: 288 of 1440 steps" in figure.caption
    assert len(figure.svg) < 60_000
    assert ET.fromstring(figure.svg).tag.endswith("svg")
    assert "0.7120 at step 144,000" in figure.alternative
    assert curve_figures([curve(9)])[0].svg == curve_figures([curve(9)])[0].svg
