import dataclasses

import pytest

from eval_tasks.records import Comparison, WithinItem
from eval_tasks.report import ReportView, sentences


def _comparison(view: ReportView, **changes: object) -> Comparison:
    assert view.comparison is not None
    return dataclasses.replace(view.comparison, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"verdict": "A better"}, "A better: A (demo step 900) is better than B (demo step 50) — "),
        ({"verdict": "B better"}, "B better: B (demo step 50) is better than A (demo step 900) — "),
        (
            {"verdict": "INDISTINGUISHABLE", "inconclusive": "UNDERPOWERED"},
            "INDISTINGUISHABLE: A (demo step 900) and B (demo step 50) cannot be told apart with these data",
        ),
        (
            {"verdict": "INDISTINGUISHABLE", "inconclusive": "EQUIVALENT"},
            "INDISTINGUISHABLE: A (demo step 900) and B (demo step 50) are EQUIVALENT within the margin",
        ),
        ({"verdict": None, "reason": "no primary metric."}, "No overall verdict on A (demo step 900) and B"),
    ],
)
def test_the_verdict_is_one_sentence_with_its_reason(view: ReportView, changes: dict[str, object], said: str) -> None:
    comparison = _comparison(view, **changes)
    sentence = sentences.verdict(comparison)
    assert sentence.startswith(said)
    assert sentence.endswith(f"— {comparison.reason.rstrip('.')}.")


def test_what_was_decided_and_what_is_exploratory(view: ReportView) -> None:
    assert sentences.exploratory(_comparison(view)).startswith(
        "Decided by rule demo-rule (superiority), registered 2026"
    )
    assert "does not bind this comparison" in sentences.exploratory(_comparison(view, exploratory=True))
    assert "no decision rule" in sentences.exploratory(_comparison(view, rule=None, exploratory=True))


def test_the_null_expectation_stands_beside_what_moved(view: ReportView) -> None:
    said = sentences.chance(_comparison(view))
    assert said.startswith("4 of 5 benchmarks tested. If nothing had changed, 0.18 of them")
    assert "0.2 if every test attained its level exactly); 2 are." in said


def test_a_health_report_says_that_it_is_no_progress_curve(view: ReportView) -> None:
    assert view.run is not None
    health = dataclasses.replace(view, run=dataclasses.replace(view.run, tier="health"))
    assert "not a progress curve" in sentences.not_claimed(health)[0]
    assert not any("progress curve" in sentence for sentence in sentences.not_claimed(view))


def test_a_run_that_is_not_whole_says_so(view: ReportView) -> None:
    assert view.run is not None
    torn = dataclasses.replace(view, run=dataclasses.replace(view.run, status="incomplete", reason="shard 3 is lost"))
    assert "The run is incomplete: shard 3 is lost." in sentences.not_claimed(torn)


def test_a_sampled_number_says_of_how_many_samples(view: ReportView) -> None:
    greedy = dataclasses.replace(view.measurements[0], metric="strict", unit="fraction", higher_is_better=True)
    assert sentences.score_name(greedy) == "strict"
    for n, said in ((8, "strict (8 samples per item)"), (1, "strict (1 sample per item)")):
        assert sentences.score_name(dataclasses.replace(greedy, within_item=WithinItem(n_samples=n))) == said


def test_a_never_checked_number_says_so(view: ReportView) -> None:
    assert sentences.companion(view.measurements[0]) == "never checked"
    assert sentences.companion(view.measurements[1]) == "80.5 [77.0, 84.0] n 460, 30 flagged (6.1 %)"
