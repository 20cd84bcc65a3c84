"""Several runs an arm: recipes compared on their own seeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as sps

from eval_tasks.compare import compare
from eval_tasks.errors import DataError, NotComparableError, UserError
from eval_tasks.records import RerunComparison, RerunDifference, Run, ScorerRef
from eval_tasks.stats.recipes import Spread, both_arms, spread
from eval_tasks.store import Store
from tests.compare.arms import rule
from tests.compare.stored import ids, scores_of, stored_run
from tests.store.samples import benchmark

BENCH = benchmark(name="bench")
N = 400
EARLY = "2025-12-31T00:00:00+00:00"


def values(seed: int, rate: float, n: int = N) -> list[float]:
    """Answers of a run: items of their own difficulty, a share flipped by the run's seed."""
    easy = np.random.default_rng(0).random(n)
    return [float(x) for x in (easy + np.random.default_rng(seed).normal(0, 0.1, n) < rate)]


def run_of(store: Store, number: int, rate: float, name: str, bench=BENCH, **changes) -> Run:
    return stored_run(
        store,
        number,
        (bench, scores_of(bench, values(number, rate), **changes.pop("scores", {}))),
        training_run=name,
        **changes,
    )


def arm(store: Store, first: int, rate: float, name: str, n: int = 3, **changes) -> list[str]:
    return [run_of(store, first + k, rate + 0.01 * k, f"{name}-{k}", **changes).run_id for k in range(n)]


def test_three_runs_of_each_are_compared_as_recipes(store):
    a, b = arm(store, 1, 0.70, "new"), arm(store, 11, 0.55, "old")
    given = store.catalog.save_rule(rule(registered_at=EARLY, seeds=3))
    found = compare(store, a, b, rule=given)
    assert (found.question, found.verdict, found.lineage) == ("recipes", "A better", "trained apart")
    assert (found.further_a, found.further_b) == (tuple(a[1:]), tuple(b[1:]))
    assert (found.label_a, found.label_b) == ("new-0 step 100 and 2 other seeds", "old-0 step 1100 and 2 other seeds")
    recipes, (test,), (first,) = found.recipes, found.recipes.tests, found.tests
    assert (recipes.n_seeds, recipes.study, recipes.paired_by_seed) == ((3, 3), "", False)
    table_a = np.array([values(k, 0.70 + 0.01 * (k - 1)) for k in (1, 2, 3)])
    table_b = np.array([values(k, 0.55 + 0.01 * (k - 11)) for k in (11, 12, 13)])
    differences = table_a.mean(axis=0) - table_b.mean(axis=0)
    assert first.delta == pytest.approx(differences.mean()) and first.n_discordant is None
    assert first.se == pytest.approx(sps.sem(differences))
    spreads = [
        Spread(
            n_runs=3,
            raw=float(np.var(t.mean(axis=1), ddof=1)),
            psi=0.0,
            flips=float(np.mean([(t[i] != t[j]).mean() for i in range(3) for j in range(i)])) / (2 * N),
        )
        for t in (table_a, table_b)
    ]
    variance, times = both_arms(*spreads)
    assert test.se == pytest.approx((first.se**2 + times * variance.common) ** 0.5)
    assert test.variances[-1].standing == "measured"
    assert test.variances[-1].origin == "the 3 and 3 runs of the two arms"
    assert "scores are means over 3 runs of A and 3 of B, item by item" in first.notes
    assert "(of the arms' own runs)" in found.reason
    assert store.catalog.comparison(found.comparison_id) == found
    assert found.comparison_id != compare(store, a[0], b[0], rule=given).comparison_id


def test_runs_that_share_a_seed_are_held_against_each_other(store):
    a, b = arm(store, 1, 0.70, "new"), arm(store, 11, 0.55, "old")
    loose = compare(store, a, b)
    paired = compare(store, a, b, seeds=(("7", "8", "9"), ("7", "8", "9")))
    assert paired.recipes.paired_by_seed and paired.comparison_id != loose.comparison_id
    assert paired.recipes.tests[0].variances[-1].origin == "3 pairs of runs that share a training seed"
    table_a = np.array([values(k, 0.70 + 0.01 * (k - 1)) for k in (1, 2, 3)])
    table_b = np.array([values(k, 0.55 + 0.01 * (k - 11)) for k in (11, 12, 13)])
    d = table_a - table_b
    common = max(0.0, np.var(d.mean(axis=1), ddof=1) - np.var(d, axis=0, ddof=1).mean() / N)
    assert paired.recipes.tests[0].variances[-1].sd == pytest.approx((common / 3) ** 0.5)
    assert paired.recipes.tests[0].delta == loose.recipes.tests[0].delta
    # Their order says nothing: the same seeds in another order are the same pairs.
    turned = compare(store, a, [b[1], b[0], b[2]], seeds=(("7", "8", "9"), ("8", "7", "9")))
    assert turned.recipes.tests[0].se == pytest.approx(paired.recipes.tests[0].se)
    other = compare(store, a, b, seeds=(("7", "8", "9"), ("7", "8", "10")))
    assert not other.recipes.paired_by_seed, "seeds that are not all the same pair nothing"


def test_steps_of_the_same_training_runs_are_pairs(store):
    a, b = arm(store, 1, 0.70, "run"), arm(store, 11, 0.55, "run")
    assert compare(store, a, b).recipes.paired_by_seed


def test_a_rule_may_ask_for_more_runs_than_there_are(store):
    a, b = arm(store, 1, 0.70, "new"), arm(store, 11, 0.55, "old")
    given = store.catalog.save_rule(rule(registered_at=EARLY, seeds=5))
    found = compare(store, a, b, rule=given)
    assert found.verdict is None and "asks for 5 runs of each arm" in found.reason
    assert found.recipes.answer == "A better on bench", "exploratory"


def test_lost_and_excluded_items_of_one_run_are_those_of_its_arm(store):
    a, b = arm(store, 1, 0.70, "new", n=2), arm(store, 11, 0.55, "old")
    rows = scores_of(BENCH, [None, *values(3, 0.72)[1:]])
    rows[1] = replace(rows[1], value=None, status="excluded")
    a.append(stored_run(store, 3, (BENCH, rows), training_run="new-2").run_id)
    (test,) = compare(store, a, b).tests
    assert (test.n_pairs, test.n_attempted) == (N - 2, N - 1)
    assert any(note.startswith("1 items have no score in an arm") for note in test.notes)


def test_the_same_content_at_two_steps_is_one_run_and_indistinguishable_from_itself(store):
    run = arm(store, 1, 0.70, "new")[0]
    same = compare(store, run, run)
    assert [t.verdict for t in same.tests] == ["INDISTINGUISHABLE"] * len(same.tests)
    assert {t.delta for t in same.tests} == {0.0}


def test_what_is_no_arm_is_refused_by_name(store):
    a, b = arm(store, 1, 0.70, "new"), arm(store, 11, 0.55, "old")
    with pytest.raises(UserError, match=r"arm B has 1 run; .* both have 3 or more.*seeds record"):
        compare(store, a, b[0])
    with pytest.raises(UserError, match="arm A has 2 runs"):
        compare(store, a[:2], b)
    with pytest.raises(UserError, match=r"arm A has run '0{31}1' twice"):
        compare(store, [a[0], a[0], a[1]], b)
    with pytest.raises(UserError, match="is in both arms"):
        compare(store, a, [a[0], b[1], b[2]])
    again = run_of(store, 21, 0.7, "new-0").run_id
    with pytest.raises(UserError, match="arm A has training run 'new-0' twice"):
        compare(store, [*a, again], b)
    with pytest.raises(UserError, match="training run new-0 is in both arms and others are not"):
        compare(store, a, [b[0], b[1], again])
    with pytest.raises(UserError, match="given for some of its runs and not for all"):
        compare(store, a, b, seeds=(("1", "", "3"), ("1", "2", "3")))
    with pytest.raises(UserError, match="for one arm and not for the other"):
        compare(store, a, b, seeds=(("1", "2", "3"), ()))
    with pytest.raises(UserError, match="arm A has training seed '1' twice"):
        compare(store, a, b, seeds=(("1", "1", "3"), ("1", "2", "3")))
    with pytest.raises(UserError, match="each arm has one run"):
        compare(store, a[0], b[0], seeds=(("1",), ("1",)))
    assert store.catalog.comparisons() == []


def test_mixed_instruments_items_graders_and_origins_are_refused(store):
    a, b = arm(store, 1, 0.70, "new"), arm(store, 11, 0.55, "old")
    template = replace(BENCH, version="2", template_digest="u" * 64)
    odd = run_of(store, 21, 0.7, "odd", template).run_id
    with pytest.raises(NotComparableError, match=r"used another instrument than run 0+ of the same.*template_digest"):
        compare(store, [a[0], a[1], odd], b)
    items = ids(N - 1)
    fewer = stored_run(store, 22, (BENCH, scores_of(BENCH, values(22, 0.7)[1:], item_ids=items)), training_run="few")
    with pytest.raises(NotComparableError, match="run 3 of arm A was planned on other items than run 1"):
        compare(store, [a[0], a[1], fewer.run_id], b)
    judged = run_of(store, 23, 0.7, "judged", grader="choice@2").run_id
    with pytest.raises(NotComparableError, match=r"'choice@1\+aaaaaaaa'.*'choice@2'.*regrade"):
        compare(store, [a[0], a[1], judged], b)
    mock = run_of(store, 24, 0.7, "mock", origin="mock").run_id
    with pytest.raises(NotComparableError, match="mock engine"):
        compare(store, [a[0], a[1], mock], b)
    weighed = scores_of(BENCH, values(25, 0.7))
    weighed[0] = replace(weighed[0], weight=2.0)
    heavy = stored_run(store, 25, (BENCH, weighed), training_run="heavy").run_id
    with pytest.raises(DataError, match="the items weigh differently in the runs of arm A"):
        compare(store, [a[0], a[1], heavy], b)


def test_arms_of_another_template_are_paired_and_other_items_partial(store):
    a = arm(store, 1, 0.70, "new")
    template = replace(BENCH, version="2", template_digest="u" * 64)
    b = [run_of(store, 11 + k, 0.6, f"old-{k}", template).run_id for k in range(3)]
    assert compare(store, a, b).tests[0].compatibility == "PAIRED"
    items = replace(BENCH, version="3", items_digest="j" * 64)
    shifted = [f"i{k:04d}" for k in range(100, 100 + N)]
    c = [run_of(store, 31 + k, 0.6, f"far-{k}", items, scores={"item_ids": shifted}).run_id for k in range(3)]
    found = compare(store, a, c)
    assert (found.tests[0].compatibility, found.tests[0].n_pairs) == ("PARTIAL", N - 100)
    assert found.recipes.answerable


def test_clusters_and_weights_are_those_of_the_paired_test(store):
    rng = np.random.default_rng(3)
    passages = replace(BENCH, cluster_key="passage", items_digest="c" * 64)
    text = benchmark(
        name="text",
        kind="loss",
        scorer=ScorerRef(name="loss", version="1"),
        primary_metric="bits_per_byte",
        items_digest="l" * 64,
        plausible_range={},
    )
    weights = rng.integers(20, 400, N)

    def made(first: int, name: str, shift: float) -> tuple[list[str], np.ndarray]:
        ids_of, losses = [], []
        for k in range(3):
            losses.append(rng.gamma(4, 0.25, N) + shift + 0.01 * k)
            grouped = [
                replace(row, cluster=f"p{i % 30}") for i, row in enumerate(scores_of(passages, values(first + k, 0.6)))
            ]
            weighed = [
                replace(row, weight=float(w))
                for row, w in zip(scores_of(text, list(losses[-1]), metric="bits_per_byte"), weights, strict=True)
            ]
            run = stored_run(store, first + k, (passages, grouped), (text, weighed), training_run=f"{name}-{k}")
            ids_of.append(run.run_id)
        return ids_of, np.array(losses)

    (a, loss_a), (b, loss_b) = made(1, "new", 0.0), made(11, "old", 0.2)
    found = compare(store, a, b)
    grouped, weighed = found.tests
    assert grouped.method.startswith("clustered differences, CR2") and weighed.method.startswith(
        "paired t on difference of r"
    )
    of_a, of_b = (spread(x, weights.astype(float)) for x in (loss_a, loss_b))
    variance, times = both_arms(of_a, of_b)
    bits = next(t for t in found.recipes.tests if t.benchmark == "text")
    assert bits.variances[-1].sd == pytest.approx((times * variance.common) ** 0.5)
    assert bits.unit == "bits per byte" and not bits.higher_is_better and bits.verdict == "A better"


def test_arms_over_several_environments_carry_the_largest_measured_effect(store):
    a = [run_of(store, 1 + k, 0.7, f"new-{k}", env_fingerprint=f"e{k % 2}").run_id for k in range(3)]
    b = [run_of(store, 11 + k, 0.6, f"old-{k}", env_fingerprint="e0").run_id for k in range(3)]
    assert compare(store, a, b).tests[0].variances[1].standing == "not measured"
    moved = RerunDifference(benchmark="bench", metric="acc", n=N, delta=0.01, se_flip=0.0)
    store.catalog.save_rerun(RerunComparison(env_a="e0", env_b="e1", measured_at="2026-01-01", differences=(moved,)))
    found = compare(store, a, b)
    assert found.tests[0].variances[1].sd == pytest.approx(0.01)
    assert "e0, e1 in A, e0 in B" in found.sources_of_variance["environment"]


def test_runs_that_flip_alike_add_no_seed_variance_and_all_right_is_defined(store):
    def flat(first: int, name: str) -> list[str]:
        return [
            stored_run(store, first + k, (BENCH, scores_of(BENCH, [1.0] * 50)), training_run=f"{name}-{k}").run_id
            for k in range(3)
        ]

    found = compare(store, flat(1, "new"), flat(11, "old"))
    (test,) = found.recipes.tests
    assert (test.delta, test.p, test.verdict, test.inconclusive) == (0.0, 1.0, "INDISTINGUISHABLE", "UNDERPOWERED")
