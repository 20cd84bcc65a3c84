"""What is promised, by simulation: coverage, false claims where nothing is there, power. Tolerances by repetitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from eval_tasks.stats.companion import difference_se
from eval_tasks.stats.composite import Component, composite
from eval_tasks.stats.influence import standard_error
from eval_tasks.stats.intervals import pooled, stratified, t_interval, wilson
from eval_tasks.stats.multiplicity import benjamini_hochberg, false_coverage_confidence
from eval_tasks.stats.paired import Table, mcnemar_mid_p, newcombe10, paired_binary, paired_continuous
from eval_tasks.stats.power import paired_mde
from eval_tasks.stats.recipes import Added, CommonVariance, flip_variance, moderated, recipe_estimate


def tolerance(rate: float, repetitions: int) -> float:
    """3.5 standard errors of a share: of 1,000 honest tests one fails."""
    return 3.5 * math.sqrt(rate * (1 - rate) / repetitions)


def tables(rng: np.random.Generator, n: int, psi: float, delta: float, repetitions: int) -> list[Table]:
    shares = [0.6, (psi + delta) / 2, (psi - delta) / 2, 0.4 - psi]
    return [Table(both=a, b=b, c=c, neither=d) for a, b, c, d in rng.multinomial(n, shares, repetitions).tolist()]


@pytest.mark.parametrize(("n", "psi", "delta"), [(100, 0.1, 0.0), (500, 0.05, 0.02), (2_000, 0.08, 0.01)])
def test_newcombes_interval_covers(n, psi, delta):
    rng, repetitions = np.random.default_rng(1), 2_000
    found = [newcombe10(t) for t in tables(rng, n, psi, delta, repetitions)]
    covered = np.mean([low <= delta <= high for low, high in found])
    assert covered >= 0.95 - tolerance(0.95, repetitions)


@pytest.mark.parametrize(("per_stratum", "n_strata"), [(3, 57), (10, 20), (100, 4)])
def test_stratified_proportions_cover_and_are_narrower(per_stratum, n_strata):
    rng, repetitions = np.random.default_rng(11), 2_000
    shares = rng.beta(0.7, 0.5, n_strata)
    strata = np.repeat(np.arange(n_strata), per_stratum)
    found, plain = [], []
    for _ in range(repetitions):
        values = (rng.random(len(strata)) < shares[strata]).astype(float)
        found.append(stratified(values, strata, binary=True).ci)
        plain.append(wilson(int(values.sum()), len(values)))
    covered = np.mean([low <= shares.mean() <= high for low, high in found])
    assert covered == pytest.approx(0.95, abs=0.01 + tolerance(0.95, repetitions))
    assert np.mean(np.diff(found)) < 0.85 * np.mean(np.diff(plain))


def test_intervals_of_losses_cover_within_strata_and_within_clusters():
    """A stratum's level is fixed and a cluster's is drawn: the same items, two questions, two errors."""
    rng, repetitions = np.random.default_rng(12), 2_000
    groups = np.repeat(np.arange(60), 10)
    levels = rng.normal(0, 1, 60)
    inside = across = ignored = 0
    for _ in range(repetitions):
        low, high = stratified(rng.normal(levels[groups], 0.5), groups).ci
        inside += low <= levels.mean() <= high
        drawn = rng.normal(rng.normal(0, 1, 60)[groups], 0.5)
        low, high = pooled(drawn, None, groups).ci
        across += low <= 0 <= high
        low, high = pooled(drawn).ci
        ignored += low <= 0 <= high
    for covered in (inside, across):
        assert covered / repetitions == pytest.approx(0.95, abs=0.005 + tolerance(0.95, repetitions))
    assert ignored / repetitions < 0.7


def test_wilson_covers_in_simulation_as_enumerated():
    rng, repetitions = np.random.default_rng(13), 4_000
    for n, p in ((50, 0.1), (500, 0.82), (2_000, 0.97)):
        found = [wilson(int(k), n) for k in rng.binomial(n, p, repetitions)]
        covered = np.mean([low <= p <= high for low, high in found])
        assert covered == pytest.approx(0.95, abs=0.02 + tolerance(0.95, repetitions))


def test_the_companions_difference_covers():
    """full - clean against its expectation, with 60 of 1,000 items contaminated and easier."""
    rng, repetitions = np.random.default_rng(14), 2_000
    covered = 0
    for _ in range(repetitions):
        dirty, clean = (rng.random(60) < 0.9).astype(float), (rng.random(940) < 0.8).astype(float)
        se = difference_se(dirty, clean)
        difference = np.concatenate([dirty, clean]).mean() - clean.mean()
        covered += abs(difference - 0.06 * 0.1) <= 1.96 * se
    assert covered / repetitions == pytest.approx(0.95, abs=0.02 + tolerance(0.95, repetitions))


def test_false_coverage_intervals_of_called_benchmarks_cover():
    """Of the benchmarks that BH calls, the FCR-adjusted intervals miss at most 5 %; plain ones miss far more."""
    rng, families, m = np.random.default_rng(15), 400, 50
    truth = np.concatenate([np.zeros(40), np.full(10, 2.5)])
    plain, adjusted, called = 0, 0, 0
    for _ in range(families):
        found = rng.normal(truth, 1)
        p = np.array([math.erfc(abs(x) / math.sqrt(2)) for x in found])
        picked = benjamini_hochberg(p) <= 0.05
        if not picked.any():
            continue
        confidence = false_coverage_confidence(int(picked.sum()), m, 0.05)
        for x, t in zip(found[picked], truth[picked], strict=True):
            low, high = t_interval(x, 1.0, math.inf)
            plain += not low <= t <= high
            low, high = t_interval(x, 1.0, math.inf, confidence)
            adjusted += not low <= t <= high
            called += 1
    assert called > 1_000
    assert adjusted / called <= 0.05 + tolerance(0.05, called)
    assert plain / called > 0.1


def test_a_composites_interval_covers_with_clusters_across_benchmarks():
    rng, repetitions, weights = np.random.default_rng(16), 1_000, (0.6, 0.4)
    codes = [np.repeat(np.arange(80), 5), np.repeat(np.arange(80), 3)]
    joint = apart = 0
    for _ in range(repetitions):
        pull = rng.normal(0, 0.3, 80)
        parts = []
        for weight, clusters in zip(weights, codes, strict=True):
            d = rng.normal(pull[clusters], 1)
            parts.append(
                Component(weight=weight, delta=float(d.mean()), influences=(d - d.mean()) / len(d), clusters=clusters)
            )
        found = composite(parts)
        low, high = t_interval(found.delta, found.se, found.df)
        joint += low <= 0 <= high
        items = composite([Component(weight=c.weight, delta=c.delta, influences=c.influences) for c in parts])
        low, high = t_interval(items.delta, items.se, items.df)
        apart += low <= 0 <= high
    assert joint / repetitions == pytest.approx(0.95, abs=0.005 + tolerance(0.95, repetitions))
    assert apart / repetitions < 0.93


def test_mid_p_calls_nothing_at_about_its_level_when_nothing_is_there():
    rng, repetitions = np.random.default_rng(2), 4_000
    called = [mcnemar_mid_p(t.b, t.c) <= 0.05 for t in tables(rng, 1_319, 0.08, 0.0, repetitions)]
    assert np.mean(called) == pytest.approx(0.05, abs=0.007 + tolerance(0.05, repetitions))


def test_mid_p_finds_the_stated_difference_four_times_in_five():
    rng, repetitions = np.random.default_rng(3), 4_000
    delta = paired_mde(1_319, 0.08)
    called = [mcnemar_mid_p(t.b, t.c) <= 0.05 for t in tables(rng, 1_319, 0.08, delta, repetitions)]
    assert np.mean(called) == pytest.approx(0.8, abs=0.01 + tolerance(0.8, repetitions))


def test_cr2_covers_with_few_unequal_clusters_where_cr1_does_not():
    rng, repetitions = np.random.default_rng(4), 2_000
    clusters = np.repeat(np.arange(8), [60, 25, 12, 6, 4, 3, 2, 2])
    cr2, cr1 = 0, 0
    for _ in range(repetitions):
        found = paired_continuous(rng.normal(size=len(clusters)), np.zeros(len(clusters)), clusters)
        low, high = found.interval()
        cr2 += low <= 0 <= high
        se, n_clusters = standard_error(found.influences, clusters)
        low, high = t_interval(found.delta, se, n_clusters - 1)
        cr1 += low <= 0 <= high
    assert cr2 / repetitions >= 0.95 - tolerance(0.95, repetitions)
    assert cr1 / repetitions < 0.95 - tolerance(0.95, repetitions)


def test_clustered_pairs_of_one_template_are_not_called_more_often_than_stated():
    """60 clusters of 10 items that flip together; ignoring them calls more than twice as often."""
    rng, repetitions = np.random.default_rng(5), 1_000
    clusters = np.repeat(np.arange(60), 10)
    by_cluster, by_item = 0, 0
    for _ in range(repetitions):
        pull = rng.normal(0, 0.12, 60)[clusters]
        draw = rng.random(600)
        a, b = (draw < 0.1 + pull).astype(float), (draw > 0.9 + pull).astype(float)
        found = paired_binary(a, b, clusters)
        by_cluster += found.p <= 0.05
        by_item += found.p_mid <= 0.05
    assert by_cluster / repetitions <= 0.05 + tolerance(0.05, repetitions)
    assert by_item / repetitions > 0.1


def test_fifty_benchmarks_of_two_seeds_of_one_recipe_give_no_false_claim():
    """Seeds differ by .6 points; 5 seeds in the study. The naive reading finds movers in every family."""
    rng, families, m, n, psi, k = np.random.default_rng(6), 400, 50, 2_000, 0.06, 5
    total, flips = 0.006**2, flip_variance(psi, n)
    se_pair = math.sqrt(psi / n)
    naive_movers, naive_claims, claims = 0, 0, 0
    for _ in range(families):
        raw = total * rng.chisquare(k - 1, m) / (k - 1)
        seeds = moderated([CommonVariance(total=float(v), flips=flips, df=k - 1) for v in raw])
        deltas = rng.normal(0, math.sqrt(se_pair**2 + 2 * (total - flips)), m)
        naive = np.array([math.erfc(abs(d) / se_pair / math.sqrt(2)) for d in deltas])
        added = [[Added(variance=seed, times=2)] for seed in seeds]
        p = np.array([recipe_estimate(float(d), se_pair, a).p for d, a in zip(deltas, added, strict=True)])
        naive_movers += int((naive <= 0.05).sum())
        naive_claims += bool((benjamini_hochberg(naive) <= 0.05).any())
        claims += bool((benjamini_hochberg(p) <= 0.05).any())
    assert naive_movers / families > 8 and naive_claims / families > 0.5
    assert claims / families <= 0.05 + tolerance(0.05, families)
