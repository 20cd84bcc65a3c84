"""What is part of an identity, and what is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eval_tasks.records import (
    Checkpoint,
    CheckpointFile,
    Comparison,
    DecisionRule,
    EngineConfig,
    Environment,
    Landing,
    PairedTest,
    Sampling,
    Suite,
)
from tests.store import samples

CONFIG = CheckpointFile(path="config.json", size=2, blake3="1" * 64)
WEIGHTS = CheckpointFile(path="model.safetensors", size=9, blake3="2" * 64)


def test_a_checkpoint_is_its_files_wherever_they_lie_and_however_they_are_listed() -> None:
    assert Checkpoint.digest_of((CONFIG, WEIGHTS)) == Checkpoint.digest_of((WEIGHTS, CONFIG))
    assert Checkpoint.digest_of((CONFIG,)) != Checkpoint.digest_of((CONFIG, WEIGHTS))
    for change in ({"path": "other"}, {"size": 3}, {"blake3": "3" * 64}):
        assert Checkpoint.digest_of((replace(CONFIG, **change),)) != Checkpoint.digest_of((CONFIG,))


def test_a_landing_is_another_when_its_listing_changed() -> None:
    landing = Landing(training_run="r", step=1, uri="s3://b/1", listing=(("a", 1, "etag-1"),))
    assert replace(landing).landing_id == landing.landing_id
    for change in ({"listing": (("a", 1, "etag-2"),)}, {"step": 2}, {"uri": "s3://b/2"}, {"training_run": "q"}):
        assert replace(landing, **change).landing_id != landing.landing_id


@pytest.mark.parametrize(
    "change",
    [{"items_digest": "x"}, {"template_digest": "x"}, {"scorer_digest": "x"}, {"max_tokens": 9}, {"kind": "loss"}],
)
def test_an_instrument_is_another_when_a_number_could_move(change: dict) -> None:
    assert samples.benchmark(**change).benchmark_id != samples.benchmark().benchmark_id


@pytest.mark.parametrize(
    "change", [{"licence": "MIT"}, {"plausible_range": {}}, {"description": "d"}, {"created_at": "2026-02-01"}]
)
def test_an_instrument_is_the_same_when_only_its_description_changed(change: dict) -> None:
    assert samples.benchmark(**change).benchmark_id == samples.benchmark().benchmark_id


def test_declared_sampling_is_part_of_the_instrument_and_its_reason_is_not() -> None:
    declared = Sampling(temperature=0.6, samples=8, reason="why")
    changes = {"temperature": 0.7, "samples": 4, "top_k": 20, "top_p": 0.9, "min_p": 0.1, "pass_at": (1,)}
    variants = [None, declared, *(replace(declared, **{name: value}) for name, value in changes.items())]
    assert len({samples.benchmark(sampling=each).benchmark_id for each in variants}) == len(variants)
    other = samples.benchmark(sampling=replace(declared, reason="another"))
    assert other.benchmark_id == samples.benchmark(sampling=declared).benchmark_id


def test_an_instrument_without_sampling_keeps_the_id_it_had() -> None:
    assert samples.benchmark().benchmark_id == "d96bae738f9ae2f4f96753c81550b111"


def test_every_engine_choice_is_in_the_request_digest() -> None:
    request = samples.run().request
    changes = {"device": "cuda", "dtype": "bfloat16", "tile": 64, "batch_size": 8, "threads": 2, "bos": "never"}
    digests = {replace(request, engine=replace(EngineConfig(), **{k: v})).request_digest for k, v in changes.items()}
    assert len(digests | {request.request_digest}) == len(changes) + 1


def test_a_run_is_its_request_its_environment_and_its_repeat() -> None:
    request = samples.run().request
    assert request.run_id("local") == request.run_id("local", 0)
    assert len({request.run_id("local"), request.run_id("gpu"), request.run_id("local", 1)}) == 3
    assert replace(request, seed=1).run_id("local") != request.run_id("local")


def test_an_environment_is_its_components_in_any_order() -> None:
    one = Environment(components={"torch": "2", "cpu": "x"})
    assert one.env_fingerprint == Environment(components={"cpu": "x", "torch": "2"}).env_fingerprint
    assert one.env_fingerprint != Environment(components={"cpu": "y", "torch": "2"}).env_fingerprint


def test_a_rule_is_its_content_and_not_its_time() -> None:
    rule = DecisionRule(name="r", kind="superiority", metric="acc", components={"a": 1.0}, registered_at="2026-01-01")
    assert replace(rule, registered_at="2026-02-01").rule_id == rule.rule_id
    assert replace(rule, alpha=0.01).rule_id != rule.rule_id


def test_a_comparison_is_its_runs_and_its_rule_or_else_its_alpha() -> None:
    rule = DecisionRule(name="r", kind="superiority", metric="acc", components={"a": 1.0})
    plain = Comparison(
        run_a="a", run_b="b", label_a="", label_b="", tests=(), n_expected_by_chance=0, alpha=0.05, reason="x"
    )
    others = ({"run_a": "b", "run_b": "a"}, {"alpha": 0.01}, {"rule": rule})
    assert len({plain.comparison_id, *(replace(plain, **change).comparison_id for change in others)}) == 4
    assert replace(plain, reason="graded anew").comparison_id == plain.comparison_id


def test_the_same_runs_by_another_grader_are_another_comparison() -> None:
    def by(grader: str) -> str:
        test = PairedTest(
            benchmark="sums",
            metric="acc",
            compatibility="SCORE",
            method="",
            n_pairs=0,
            n_attempted=0,
            score_a=None,
            score_b=None,
            delta=None,
            se=None,
            ci95=None,
            p=None,
            grader=grader,
        )
        return Comparison(
            run_a="a", run_b="b", label_a="", label_b="", tests=(test,), n_expected_by_chance=0, alpha=0.05
        ).comparison_id

    assert len({by(""), by("gsm8k@2"), by("human/panel@1")}) == 3


def test_a_suite_without_entries_has_an_identity_of_its_own() -> None:
    assert len({Suite(name=n, version="1", tier="health", entries=()).suite_id for n in ("a", "b")}) == 2
