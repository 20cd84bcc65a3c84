"""The two questions: do the checkpoints differ, do the recipes differ?"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema
import numpy as np
import pytest

from eval_tasks.aggregate import aggregate
from eval_tasks.compare import compare
from eval_tasks.errors import NotComparableError, UserError
from eval_tasks.records import RerunComparison, RerunDifference, Scale, SeedStudy, StudiedBenchmark
from eval_tasks.report import ReportView, report_html, terminal_text
from eval_tasks.report.comparison_document import SCHEMA_FILE, comparison_json
from eval_tasks.stats.paired import mcnemar_mid_p
from eval_tasks.store import Store
from tests.compare.arms import cells, rule
from tests.compare.stored import scores_of, stored_run
from tests.store.samples import NOW, benchmark

BENCH = benchmark(name="bench")
A, B = cells(1_200, 150, 90, 560)
S2 = 1.5e-4
EARLY = "2025-12-31T00:00:00+00:00"


def studied(**changes: Any) -> StudiedBenchmark:
    fields: dict[str, Any] = {
        "benchmark": "bench", "metric": "acc", "n": 2_000, "n_seeds": 5, "s2_raw": S2, "psi_seed": 0.06
    }  # fmt: skip
    return StudiedBenchmark(**{**fields, **changes})


def study(*benchmarks: StudiedBenchmark, **changes: Any) -> SeedStudy:
    fields: dict[str, Any] = {
        "name": "seeds",
        "origin": "imported",
        "source": "table 3",
        "scale": Scale(parameters=1_000_000),
        "benchmarks": benchmarks or (studied(),),
        "measured_at": "2026-01-15",
        "recorded_at": NOW,
    }
    return SeedStudy(**{**fields, **changes})


def apart(
    store: Store, *, n_parameters: int | None = 1_000_000, a=A, b=B, benchmarks=(BENCH,), **changes: Any
) -> tuple[str, str]:
    """Two runs of two training runs."""
    runs = [
        stored_run(store, k, *((x, scores_of(x, values)) for x in benchmarks), training_run=name, **changes)
        for k, name, values in ((1, "new-recipe", a), (2, "old-recipe", b))
    ]
    for run in runs:
        checkpoint = store.catalog.checkpoint(run.request.checkpoint_id)
        store.catalog.save_checkpoint(replace(checkpoint, n_parameters=n_parameters))
    return runs[0].run_id, runs[1].run_id


def registered(store: Store, **fields: Any) -> Any:
    return store.catalog.save_rule(rule(registered_at=EARLY, **fields))


def test_one_training_run_asks_the_first_question_alone(store):
    runs = [stored_run(store, k, (BENCH, scores_of(BENCH, values))).run_id for k, values in ((1, A), (2, B))]
    store.catalog.save_seed_study(study())
    found = compare(store, *runs, rule=registered(store))
    assert (found.lineage, found.question, found.recipes) == ("one training run", "checkpoints", None)
    assert found.verdict == "A better"
    with pytest.raises(UserError, match="--seed-study seeds: both checkpoints are of training run 'tiny'"):
        compare(store, *runs, seed_study="seeds")


def test_trained_apart_without_a_study_the_recipes_are_not_answerable_and_the_checkpoints_are(store):
    found = compare(store, *apart(store), rule=registered(store))
    assert (found.lineage, found.question, found.verdict) == ("trained apart", "checkpoints", "A better")
    assert found.recipes is not None and not found.recipes.answerable and found.recipes.tests == ()
    assert found.recipes.checkpoints == "A better on bench"
    assert found.recipes.answer.startswith("not answerable: no seed study of these benchmarks (record one")
    sentence = comparison_json(found)["sentence"]
    assert sentence.startswith("A better: A (new-recipe step 100) is better than")
    assert sentence.endswith("'seeds record' or 'seeds import').") and "The recipes: not answerable" in sentence


def test_with_a_study_the_rule_decides_on_the_recipes(store):
    runs = apart(store)
    store.catalog.save_seed_study(study())
    found = compare(store, *runs, rule=registered(store))
    recipes, (test,) = found.recipes, found.recipes.tests
    assert (found.question, found.verdict, found.inconclusive) == ("recipes", "INDISTINGUISHABLE", "UNDERPOWERED")
    assert recipes.checkpoints == "A better on bench" and found.tests[0].verdict == "A better"
    assert (
        recipes.answer == "not shown, by rule 'ship': the data cannot tell; by benchmark: no difference shown on bench"
    )
    assert recipes.study == "seeds@1" and recipes.n_seeds == (1, 1)
    # V = psi / n - delta^2 / n and twice what the study's seeds share; t on Satterthwaite's degrees.
    common = S2 - 0.06 / (2 * 2_000)
    se_pair = found.tests[0].se
    assert test.se == pytest.approx((se_pair**2 + 2 * common) ** 0.5)
    df = test.se**4 / ((2 * S2) ** 2 / 4 + se_pair**4 / 1_999)
    assert test.df == pytest.approx(df)
    assert test.p > found.tests[0].p == mcnemar_mid_p(150, 90)
    low, high = found.tests[0].ci95
    assert test.ci95[0] < low and test.ci95[1] > high and test.mde > found.tests[0].mde
    assert [t.source for t in test.variances] == ["items", "engine", "training seed"]
    seed = test.variances[-1]
    assert seed.standing == "prior" and seed.sd == pytest.approx((2 * common) ** 0.5)
    assert seed.origin == "seeds@1: 5 runs of 1M parameters, measured 2026-01-15, table 3"
    assert found.reason.startswith("with the noise between training seeds (seed study seeds@1), on bench acc, A is 3 ")
    assert test.seeds_needed is None, "how the items fell alone hides 1 point"
    assert found.reason.endswith("; no number of training runs would settle 1 point on these items.")
    wide = compare(store, *runs, rule=registered(store, name="wide", kind="superiority_by_margin", margin=0.03))
    needed = wide.recipes.tests[0].seeds_needed
    assert wide.reason.endswith(f"; about {needed} training runs of each recipe would settle 3 points.") and needed > 3
    assert "the recipe of A (new-recipe step 100) and the recipe of B" in comparison_json(found)["sentence"]
    assert store.catalog.comparison(found.comparison_id) == found


def test_an_exploratory_rule_says_so_before_anything_else(store):
    runs = apart(store)
    store.catalog.save_seed_study(study())
    late = compare(store, *runs, rule=store.catalog.save_rule(rule(registered_at="2027-01-01T00:00:00+00:00")))
    assert late.exploratory and late.question == "recipes"
    assert late.reason.startswith("exploratory, since rule 'ship' was registered at 2027")
    assert "; with the noise between training seeds (seed study seeds@1), on bench acc" in late.reason


def test_a_large_difference_is_shown_for_recipes_too(store):
    store.catalog.save_seed_study(study())
    found = compare(store, *apart(store, a=[1.0] * 1_700 + [0.0] * 300), rule=registered(store))
    assert (found.question, found.verdict, found.rule_met) == ("recipes", "A better", True)
    assert found.recipes.answer == "yes, A's is better, by rule 'ship'; by benchmark: A better on bench"


@pytest.mark.parametrize(
    ("scale", "n_parameters", "why"),
    [
        (Scale(parameters=50_000_000), 1_000_000, "the study is of 50M parameters, and what is compared of 1M"),
        (Scale(parameters=1_000_000), None, "the parameters of what is compared are not known"),
        (Scale(), 1_000_000, "the study does not say how large its models are"),
        (
            Scale(parameters=1_100_000, step=1_000),
            1_000_000,
            "the study is of 1,000 steps, and what is compared of 100",
        ),
        (Scale(parameters=1_000_000, tokens=10**9), 1_000_000, "for how many these were trained is not known"),
    ],
)
def test_another_scale_is_extrapolated_and_says_so(store, scale, n_parameters, why):
    runs = apart(store, n_parameters=n_parameters)
    store.catalog.save_seed_study(study(scale=scale))
    found = compare(store, *runs, rule=registered(store))
    term = found.recipes.tests[0].variances[-1]
    assert term.standing == "EXTRAPOLATED" and why in term.origin
    common = S2 * np.exp(0.8416 * 0.5) ** 2 - 0.06 / 4_000
    assert term.sd == pytest.approx((2 * common) ** 0.5)
    assert "(seed study seeds@1, EXTRAPOLATED)" in found.reason
    assert "EXTRAPOLATED" in found.sources_of_variance["training seed"]


def test_the_study_that_serves_best_is_taken_and_another_can_be_named(store):
    runs = apart(store)
    for one in (
        study(name="far", scale=Scale(parameters=10**9), measured_at="2026-02-01"),
        study(name="near"),
        study(name="other", benchmarks=(studied(benchmark="else"),), measured_at="2026-03-01"),
    ):
        store.catalog.save_seed_study(one)
    chosen = compare(store, *runs)
    assert chosen.recipes.study == "near@1"
    named = compare(store, *runs, seed_study="far@1")
    assert named.recipes.study == "far@1" and named.comparison_id != chosen.comparison_id
    with pytest.raises(UserError, match="no seed study 'farr' in the catalog; close: 'far'"):
        compare(store, *runs, seed_study="farr")
    with pytest.raises(UserError, match="'x' is no version"):
        compare(store, *runs, seed_study="far@x")
    with pytest.raises(NotComparableError, match=r"other@1 serves no benchmark .* has no acc of bench"):
        compare(store, *runs, seed_study="other")


def test_a_study_of_another_benchmark_version_does_not_serve(store):
    runs = apart(store)
    store.catalog.save_seed_study(study(studied(version="7")))
    found = compare(store, *runs)
    assert not found.recipes.answerable and "seeds@1 is of bench@7, not of @1" in found.recipes.answer
    with pytest.raises(NotComparableError, match=r"bench: seed study seeds@1 is of bench@7, not of @1"):
        compare(store, *runs, seed_study="seeds")


def test_runs_that_name_no_training_run_are_answered_for_when_a_study_is_named(store):
    runs = [
        stored_run(store, k, (BENCH, scores_of(BENCH, values)), training_run=name).run_id
        for k, name, values in ((1, "new", A), (2, "", B))
    ]
    store.catalog.save_seed_study(study())
    found = compare(store, *runs)
    assert found.lineage == "not known" and "a run does not say which training run" in found.recipes.answer
    assert compare(store, *runs, seed_study="seeds").recipes.answerable


def test_benchmarks_inform_each_others_variance_and_one_without_a_study_is_named(store):
    other = replace(BENCH, name="other", items_digest="o" * 64)
    third = replace(BENCH, name="third", items_digest="p" * 64)
    runs = apart(store, benchmarks=(BENCH, other, third))
    noisy = studied(benchmark="other", s2_raw=9e-5)
    store.catalog.save_seed_study(study(studied(s2_raw=2e-5), noisy, studied(benchmark="else", s2_raw=4e-5)))
    found = compare(store, *runs)
    tests = {t.benchmark: t for t in found.recipes.tests}
    idio = 0.06 / 4_000
    mean = (5e-6 + 7.5e-5 + 2.5e-5) / 3
    total = (6 * (idio + mean) + 4 * 2e-5) / 10
    assert tests["bench"].variances[-1].sd == pytest.approx((2 * (total - idio)) ** 0.5)
    assert tests["third"].not_answerable == "seed study seeds@1 has no acc of third" and tests["third"].p is None
    assert found.recipes.answer.endswith("not answerable on third")
    needs = compare(store, *runs, rule=registered(store, components={"third": 1.0}))
    assert (needs.question, needs.verdict) == ("checkpoints", "A better")
    assert "rule 'ship' is left with the checkpoints: third: seed study seeds@1 has no acc of third" in (
        needs.recipes.answer
    )


def test_a_composite_has_its_own_seed_variance(store):
    other = replace(BENCH, name="other", items_digest="o" * 64)
    runs = apart(store, benchmarks=(BENCH, other))
    up, down = (0.60, 0.61, 0.62), (0.42, 0.41, 0.40)
    parts = [
        studied(benchmark=name, n_seeds=3, scores=scores, s2_raw=float(np.var(scores, ddof=1)))
        for name, scores in (("bench", up), ("other", down))
    ]
    store.catalog.save_seed_study(study(*parts))
    weighted = registered(store, components={"bench": 0.5, "other": 0.5})
    found = compare(store, *runs, rule=weighted)
    # The two move against each other over seeds: their mean does not move at all.
    assert found.question == "recipes" and found.recipes.composite.variances[0].sd == 0.0
    assert found.recipes.composite.verdict == "A better" and found.composite.verdict == "A better"
    assert all(t.verdict == "INDISTINGUISHABLE" for t in found.recipes.tests)
    store.catalog.save_seed_study(study(*(replace(part, scores=()) for part in parts), name="seeds"))
    found = compare(store, *runs, rule=weighted)
    assert found.question == "checkpoints"
    assert "do not add up to a composite's" in found.recipes.composite.not_answerable


def test_a_quarantined_benchmark_is_in_neither_answer(store):
    runs = apart(store)
    store.catalog.save_seed_study(study())
    shut = [replace(m, quarantined=True, quarantine_reason="range") for m in aggregate(store, runs[0])]
    store.catalog.save_measurements(runs[0], shut)
    found = compare(store, *runs)
    assert not found.recipes.answerable and found.recipes.answer == "not answerable: quarantined in A: range"


def test_a_rule_that_asks_for_seeds_still_gets_the_exploratory_answer(store):
    runs = apart(store)
    store.catalog.save_seed_study(study())
    found = compare(store, *runs, rule=registered(store, seeds=3))
    assert found.verdict is None and "asks for 3 runs of each arm" in found.reason
    assert found.recipes.answer == "no difference shown on bench"


def reruns(env_a: str, env_b: str, *deltas: float, se: float = 0.0, **changes: Any) -> RerunComparison:
    differences = tuple(
        RerunDifference(benchmark=name, metric="acc", n=1_000, delta=delta, se_flip=se)
        for name, delta in zip(("bench", "x", "y", "z"), deltas, strict=False)
    )
    return RerunComparison(env_a=env_a, env_b=env_b, measured_at=NOW, differences=differences, **changes)


def in_environments(store: Store, env_a: str, env_b: str, **changes: Any) -> tuple[str, str]:
    return tuple(
        stored_run(store, k, (BENCH, scores_of(BENCH, values)), env_fingerprint=env, **changes).run_id
        for k, env, values in ((1, env_a, A), (2, env_b, B))
    )


def test_an_engine_that_repeats_itself_adds_nothing_and_says_when_it_was_seen(store):
    runs = in_environments(store, "e1", "e1")
    before = compare(store, *runs).tests[0]
    assert before.variances[1].standing == "not measured" and before.variances[1].sd is None
    store.catalog.save_rerun(reruns("e1", "e1", 0.0, 0.0, checkpoint_id="c"))
    found = compare(store, *runs)
    (test,) = found.tests
    assert (test.p, test.ci95) == (before.p, before.ci95)
    assert test.variances[1].standing == "measured" and test.variances[1].sd == 0.0
    assert found.sources_of_variance["engine"] == (
        "measured: 2 rerun scores, last on 2026-01-31, every score equal; adds nothing"
    )


def test_the_environments_measured_effect_is_in_the_test(store):
    runs = in_environments(store, "e1", "e2")
    flagged = compare(store, *runs)
    assert "not measured and not in the interval" in flagged.tests[0].notes[0]
    assert flagged.sources_of_variance["environment"].endswith("not yet measured and not in the intervals")
    store.catalog.save_rerun(reruns("e2", "e1", 0.01, -0.02, se=0.005, checkpoint_id="c"))
    found = compare(store, *runs)
    (test,), (before,) = found.tests, flagged.tests
    common = (0.01**2 + 0.02**2) / 2 - 0.005**2
    assert test.variances[1].source == "environment" and test.variances[1].sd == pytest.approx(common**0.5)
    assert test.se == pytest.approx((before.se**2 + common) ** 0.5)
    assert test.p > before.p and test.ci95[0] < before.ci95[0] and test.n_needed is None
    assert test.notes[0] == "cross-environment: the environments' measured effect (SD 1.5 points) is in p and interval"
    assert found.sources_of_variance["environment"].endswith("adds to the intervals of 1 of 1 benchmarks")


def test_what_another_benchmark_showed_of_the_environments_is_a_prior(store):
    runs = in_environments(store, "e1", "e2")
    rerun = reruns("e1", "e2", 0.01, 0.01)
    store.catalog.save_rerun(replace(rerun, differences=rerun.differences[1:]))
    assert compare(store, *runs).tests[0].variances[1].standing == "prior"
    store.catalog.save_rerun(
        replace(reruns("e1", "e1", 0.0), differences=(replace(rerun.differences[0], unit="bits"),))
    )
    within = [stored_run(store, k, (BENCH, scores_of(BENCH, A)), env_fingerprint="e1").run_id for k in (3, 4)]
    assert (
        compare(store, *within).tests[0].variances[1].origin == "no rerun in this environment has a metric in fraction"
    )


def test_one_metric_of_a_benchmark_is_one_measurement(store):
    runs = in_environments(store, "e1", "e2")
    rerun = reruns("e1", "e2", 0.01)
    beside = (replace(rerun.differences[0], metric="aaa", delta=0.5), *rerun.differences)
    store.catalog.save_rerun(replace(rerun, differences=beside))
    test = compare(store, *runs).tests[0]
    assert test.variances[1].sd == pytest.approx(0.01) and test.variances[1].origin.startswith("1 rerun scores")


def test_the_same_rerun_twice_counts_once(store):
    runs = in_environments(store, "e1", "e2")
    store.catalog.save_rerun(reruns("e1", "e2", 0.01, 0.02, checkpoint_id="c"))
    once = compare(store, *runs).tests[0]
    store.catalog.save_rerun(replace(reruns("e1", "e2", 0.01, 0.02, checkpoint_id="c"), measured_at="2026-02-02"))
    assert compare(store, *runs).tests[0].p == once.p


def test_every_rendering_answers_both_questions(store):
    runs = apart(store)
    store.catalog.save_seed_study(study())
    for given in (None, registered(store)):
        found = compare(store, *runs, rule=given)
        document = json.loads(json.dumps(comparison_json(found), allow_nan=False))
        jsonschema.validate(document, json.loads(SCHEMA_FILE.read_text("utf-8")), cls=jsonschema.Draft202012Validator)
        view = ReportView(comparison=found)
        text, page = terminal_text(view, width=400), report_html(view)
        for rendering in (text, page):
            assert "Do these checkpoints differ?" in rendering and "Do the recipes differ?" in rendering
            assert "A better on bench" in rendering and "no difference shown" in rendering
            assert "seeds@1: 5 runs of 1M parameters, measured 2026-01-15, table 3" in rendering
        assert "1.64 points (prior)" in page and "Two questions, two answers" in page
