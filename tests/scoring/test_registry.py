"""The registry's doors: names, versions, metrics, validation."""

from __future__ import annotations

import pytest

from eval_tasks import scoring
from eval_tasks.errors import UserError
from eval_tasks.records import ScorerRef
from eval_tasks.scoring.registry import MetricInfo, find_scorer, merged_parameters, scorer


def test_the_shipped_scorers_and_their_primary_metrics() -> None:
    primary = {name: scoring.primary_metric(name) for name in scoring.scorer_names()}
    assert primary == {
        "choice": "acc",
        "continuation": "nats",
        "exact_match": "exact_match",
        "filtered_match": "exact_match",
        "gsm8k": "flexible",
        "ifeval": "prompt_strict",
        "loss": "bits_per_byte",
        "numeric": "within_tolerance",
        "regex": "regex_match",
        "strict_flexible": "strict",
        "verdict": "verdict",
    }
    assert scoring.scorer_metrics("choice") == ["acc", "acc_norm"]
    assert scoring.LM_EVAL_VERSION == "0.4.9"


def test_metric_info_tells_direction_unit_and_summary() -> None:
    loss = scoring.metric_info("loss", "bits_per_byte")
    assert (loss.higher_is_better, loss.unit, loss.binary, loss.summary) == (False, "bits per byte", False, "pooled")
    assert scoring.metric_info("choice", "acc") == MetricInfo()
    assert scoring.metric_info("ifeval", "inst_loose").summary == "pooled"
    with pytest.raises(UserError, match=r"scorer 'choice' has no metric 'acc_nrom'; close: 'acc_norm'"):
        scoring.metric_info("choice", "acc_nrom")


@pytest.mark.parametrize(
    ("ref", "kind", "message"),
    [
        (ScorerRef(name="choise", version="1"), "choice", "no scorer 'choise'; close: 'choice'"),
        (ScorerRef(name="choice", version="0"), "choice", "has version '1' here, not '0'"),
        (ScorerRef(name="choice", version="1"), "generation", "scores choice benchmarks, not kind 'generation'"),
        (ScorerRef(name="choice", version="1", parameters={"x": 1}), "choice", "has no parameter 'x'"),
        (ScorerRef(name="exact_match", version="1", parameters={"strip": "no"}), "generation", "takes bool"),
        (ScorerRef(name="exact_match", version="1", parameters={"strip": 1}), "generation", "takes bool"),
        (ScorerRef(name="numeric", version="1", parameters={"absolute": True}), "generation", "takes float"),
        (ScorerRef(name="numeric", version="1", parameters={"absolute": "1"}), "generation", "takes float"),
    ],
)
def test_a_wrong_reference_is_refused_by_name(ref: ScorerRef, kind: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        scoring.validate_scorer(ref, kind)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_parameters_are_filled_in() -> None:
    ref = ScorerRef(name="exact_match", version="1", parameters={"ignore_case": True})
    scoring.validate_scorer(ref, "generation")
    assert merged_parameters(ref)["ignore_case"] is True
    assert merged_parameters(ref)["strip"] is True


def test_a_number_is_the_same_parameter_as_an_integer_and_with_a_point() -> None:
    digests = set()
    for value in (1, 1.0):
        ref = ScorerRef(name="numeric", version="1", parameters={"absolute": value})
        scoring.validate_scorer(ref, "generation")
        assert type(merged_parameters(ref)["absolute"]) is float
        digests.add(scoring.scorer_digest(ref))
    half = ScorerRef(name="numeric", version="1", parameters={"absolute": 0.5})
    assert len(digests) == 1 != len({*digests, scoring.scorer_digest(half)})


def test_every_scorer_has_a_digest_with_its_defaults() -> None:
    refs = [ScorerRef(name=name, version=scoring.scorer_version(name)) for name in scoring.scorer_names()]
    assert len({scoring.scorer_digest(ref) for ref in refs}) == len(refs)


def test_a_name_is_registered_once() -> None:
    known = find_scorer("choice")
    with pytest.raises(UserError, match="registered twice"):
        scorer("choice", version="2", kinds=("choice",), metrics={"acc": MetricInfo()})(known.function)
    assert find_scorer("choice") is known
