"""The recipes' verdict, by simulation: false claims with A against A, coverage, power. Tolerances by repetitions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from eval_tasks.compare import compare_scores
from eval_tasks.compare.noise import Noise, SeedNoise, SeedRuns
from eval_tasks.stats.multiplicity import benjamini_hochberg
from eval_tasks.stats.paired import paired_binary, paired_continuous
from eval_tasks.stats.power import mde_from_se
from eval_tasks.stats.recipes import (
    Added,
    CommonVariance,
    both_arms,
    extrapolated,
    moderated,
    recipe_estimate,
    seeds_settling,
    spread,
    total_error,
)
from tests.compare.arms import SIDES, arms
from tests.stats.test_simulations import tolerance

N_ITEMS = 500
COMMON, FLIP, ITEM = 0.06, 0.35, 0.25
"""Spreads on the scale of an answer's margin: a seed's on all items, on one item, and a recipe's on one item."""


def answers(rng: np.random.Generator, ease: np.ndarray, k: int, common: float = COMMON) -> np.ndarray:
    """Right or wrong of k seeds of one recipe, shape (k, items). A recipe has its own strengths by item."""
    own = rng.normal(0, ITEM, len(ease))
    seeds, flips = rng.normal(0, common, (k, 1)), rng.normal(0, FLIP, (k, len(ease)))
    return (ease + own + seeds + flips > 0).astype(float)


def studied(rng: np.random.Generator, k: int, common: float = COMMON) -> CommonVariance:
    """What a study of k seeds measures of one benchmark."""
    found = spread(answers(rng, rng.normal(0.4, 1, N_ITEMS), k, common))
    return CommonVariance(total=found.raw, flips=found.flips, df=k - 1)


def one_run_each(rng: np.random.Generator, seed: CommonVariance, common: float = COMMON) -> tuple[float, float]:
    """p of the recipes and of the items for one run of each of two recipes that are equally good."""
    ease = rng.normal(0.4, 1, N_ITEMS)
    a, b = answers(rng, ease, 1, common)[0], answers(rng, ease, 1, common)[0]
    found = paired_binary(a, b)
    estimate = recipe_estimate(found.delta, found.se, [Added(variance=seed, times=2)], pair_df=found.df)
    return max(estimate.p, found.p), found.p


def false_claims(repetitions: int, m: int, k: int) -> tuple[float, float]:
    """Share of rejections over single benchmarks, by the recipes' p and by the items' alone."""
    rng = np.random.default_rng(11 * m + k)
    of_recipes, of_items, n = 0, 0, 0
    for _ in range(repetitions // m):
        for seed in moderated([studied(rng, k) for _ in range(m)]):
            recipes, items = one_run_each(rng, seed)
            of_recipes, of_items, n = of_recipes + (recipes <= 0.05), of_items + (items <= 0.05), n + 1
    return of_recipes / n, of_items / n


@pytest.mark.parametrize(("m", "k"), [(1, 3), (10, 3), (10, 5)])
def test_two_seeds_of_one_recipe_are_rarely_called_recipes_that_differ(m, k):
    repetitions = 2_000
    of_recipes, of_items = false_claims(repetitions, m, k)
    assert of_recipes <= 0.05 + tolerance(0.05, repetitions)
    assert of_items > 0.1, "the items alone call seeds different"


@pytest.mark.full
@pytest.mark.parametrize(("m", "k"), [(1, 3), (1, 5), (5, 3), (20, 3), (20, 5), (20, 10)])
def test_the_level_holds_for_every_size_of_study(m, k):
    repetitions = 20_000
    of_recipes, _ = false_claims(repetitions, m, k)
    # One benchmark alone: a variance that comes out at nothing by chance takes its degrees of freedom along.
    assert of_recipes <= (0.06 if m == 1 else 0.05) + tolerance(0.05, repetitions)


def test_no_false_claim_in_a_family_through_the_whole_comparison():
    """A against A with seed noise, 12 benchmarks a family: any claim in at most one family in twenty."""
    rng, families, m, k = np.random.default_rng(21), 120, 12, 5
    claims, naive = 0, 0
    for _ in range(families):
        names = [f"b{j}" for j in range(m)]
        runs = {
            name: SeedRuns(unit="fraction", spreads=(spread(answers(rng, rng.normal(0.4, 1, N_ITEMS), k)),))
            for name in names
        }
        noise = Noise(
            lineage="trained apart",
            seeds=SeedNoise(design="study", runs=runs, standing="prior", origin="simulated", reference="s@1"),
        )
        listed = []
        for name in names:
            ease = rng.normal(0.4, 1, N_ITEMS)
            listed.append(arms(list(answers(rng, ease, 1)[0]), list(answers(rng, ease, 1)[0]), name=name))
        found = compare_scores(listed, replace(SIDES, noise=noise))
        claims += any(t.verdict != "INDISTINGUISHABLE" for t in found.recipes.tests)
        naive += any(t.verdict != "INDISTINGUISHABLE" for t in found.tests)
    assert claims / families <= 0.05 + tolerance(0.05, families)
    assert naive / families > 0.3, "the checkpoints do differ"


def losses(rng: np.random.Generator, k: int, *, n: int, level: float = 0.0, seed_sd: float = 0.02) -> np.ndarray:
    """Losses of k seeds of a recipe around `level`: item by item, with the recipe's own item effects and item noise."""
    own, flips = rng.normal(0, 0.25, n), rng.normal(0, 0.3, (k, n))
    return level + own + rng.normal(0, seed_sd, (k, 1)) + flips


def several_runs_each(
    rng: np.random.Generator, m: int, k: int, *, n: int, level: float = 0.0, seed_sd: float = 0.02
) -> list[tuple[float, float, list[Added], float]]:
    """(difference, paired error, seeds' variance, degrees) of m benchmarks with k runs of each recipe."""
    found, own = [], []
    for _ in range(m):
        a, b = losses(rng, k, n=n, level=level, seed_sd=seed_sd), losses(rng, k, n=n, seed_sd=seed_sd)
        pair = paired_continuous(a.mean(axis=0), b.mean(axis=0))
        variance, times = both_arms(spread(a), spread(b))
        own.append(variance)
        found.append((pair.delta, pair.se, times, pair.df))
    return [
        (delta, se, [Added(variance=v, times=times)], df)
        for (delta, se, times, df), v in zip(found, moderated(own), strict=True)
    ]


@pytest.mark.parametrize(("m", "k"), [(1, 3), (8, 3), (8, 5)])
def test_intervals_of_several_runs_each_cover_the_recipes_difference(m, k):
    """New seeds and new items in every repetition: what a reader takes the interval to speak of."""
    rng, repetitions = np.random.default_rng(31 + m + k), 1_600
    covered, by_items = 0, 0
    for _ in range(repetitions // m):
        for delta, se, added, df in several_runs_each(rng, m, k, n=300, level=0.05):
            low, high = recipe_estimate(delta, se, added, pair_df=df).ci
            covered += low <= 0.05 <= high
            by_items += abs(delta - 0.05) <= 1.968 * se
    assert covered / repetitions >= 0.95 - tolerance(0.95, repetitions)
    assert by_items / repetitions < 0.95 - tolerance(0.95, repetitions)


def test_the_arms_own_seeds_keep_the_level_in_a_family():
    rng, families, m = np.random.default_rng(41), 400, 10
    claims = 0
    for _ in range(families):
        p = [
            recipe_estimate(delta, se, added, pair_df=df).p
            for delta, se, added, df in several_runs_each(rng, m, 3, n=200)
        ]
        claims += bool((benjamini_hochberg(np.array(p)) <= 0.05).any())
    assert claims / families <= 0.05 + tolerance(0.05, families)


def test_pairs_of_one_seed_keep_the_level_and_gain_where_seeds_are_shared():
    """Both arms share what the seed does: its spread falls out of the pairs' differences and stays in the arms'."""
    rng, repetitions, n, k = np.random.default_rng(51), 1_000, 200, 5
    called, se_pairs, se_arms = 0, [], []
    for _ in range(repetitions):
        shared = rng.normal(0, 0.05, (k, 1))
        a, b = losses(rng, k, n=n, seed_sd=0.01) + shared, losses(rng, k, n=n, seed_sd=0.01) + shared
        pair = paired_continuous(a.mean(axis=0), b.mean(axis=0))
        of_pairs = spread(a - b)
        added = Added(variance=CommonVariance(total=of_pairs.raw, flips=of_pairs.flips, df=k - 1), times=1 / k)
        found = recipe_estimate(pair.delta, pair.se, [added], pair_df=pair.df)
        called += found.p <= 0.05
        variance, times = both_arms(spread(a), spread(b))
        se_pairs.append(found.se)
        se_arms.append(total_error(pair.se, [Added(variance=variance, times=times)])[0])
    assert called / repetitions <= 0.05 + tolerance(0.05, repetitions)
    assert np.mean(se_pairs) < 0.85 * np.mean(se_arms)


def test_the_stated_difference_is_found_four_times_in_five():
    """Many benchmarks know the seeds' variance well: power at the difference that theory states for known variances."""
    rng, families, m, k, n, seed_sd = np.random.default_rng(61), 60, 20, 3, 400, 0.03
    variance = (2 * 0.25**2 + 2 * 0.3**2 / k) / n + 2 * seed_sd**2 / k
    # Satterthwaite's degrees at the true variances: 4 of the benchmark's own runs and 6 of the others'.
    whole = 2 / k * (seed_sd**2 + 0.3**2 / n)
    df = variance**2 / (whole**2 / 10)
    level = mde_from_se(math.sqrt(variance), df)
    found = [
        recipe_estimate(delta, se, added, pair_df=df_pair).p <= 0.05
        for _ in range(families)
        for delta, se, added, df_pair in several_runs_each(rng, m, k, n=n, level=level, seed_sd=seed_sd)
    ]
    assert np.mean(found) == pytest.approx(0.8, abs=0.02 + tolerance(0.8, families * m))


def test_the_stated_number_of_runs_settles_the_margin():
    rng, repetitions, n, seed_sd, target = np.random.default_rng(71), 600, 500, 0.02, 0.06
    seed = CommonVariance(total=seed_sd**2, flips=0.0, df=100)
    k = seeds_settling(target, steady=2 * 0.25**2 / n, flips=0.3**2 / n, seed=seed)
    assert k is not None and 3 <= k <= 12

    def power(runs: int) -> float:
        found = [several_runs_each(rng, 1, runs, n=n, level=target, seed_sd=seed_sd)[0] for _ in range(repetitions)]
        return float(np.mean([recipe_estimate(d, se, added, pair_df=df).p <= 0.05 for d, se, added, df in found]))

    assert power(k) >= 0.8 - 0.03 - tolerance(0.8, repetitions)
    assert power(max(2, k - 2)) < 0.8 + tolerance(0.8, repetitions)


def test_a_study_of_another_scale_keeps_the_level_when_sigma_was_wrong_by_as_much_as_allowed_for():
    """sigma at the compared scale differs from the study's by a log-normal factor with SD .5, as tau says."""
    rng, families, m, k = np.random.default_rng(81), 60, 20, 5
    called, plain, n = 0, 0, 0
    for _ in range(families):
        factor = math.exp(rng.normal(0, 0.5))
        for seed in moderated([studied(rng, k) for _ in range(m)]):
            enlarged, _ = one_run_each(rng, extrapolated(seed), COMMON * factor)
            called, n = called + (enlarged <= 0.05), n + 1
            plain += one_run_each(rng, seed, COMMON * factor)[0] <= 0.05
    # Families share a factor, so that they are the repetitions.
    assert called / n <= 0.05 + tolerance(0.05, families)
    assert plain / n > called / n
