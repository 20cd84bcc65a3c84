"""Several benchmarks, one difference."""

from __future__ import annotations

import math

import numpy as np
import pytest

from eval_tasks.stats.composite import Component, composite
from eval_tasks.stats.intervals import t_interval


def component(weight, differences, clusters=None):
    d = np.array(differences, dtype=float)
    codes = None if clusters is None else np.array(clusters)
    return Component(weight=weight, delta=float(d.mean()), influences=(d - d.mean()) / len(d), clusters=codes)


def test_independent_benchmarks_add_their_variances():
    one, two = component(0.5, [1, 0, 0, -1, 1]), component(0.5, [0, 0, 1, 1])
    result = composite([one, two])
    variances = [0.25 * np.var(d, ddof=1) / len(d) for d in ([1, 0, 0, -1, 1], [0, 0, 1, 1])]
    assert result.delta == pytest.approx(0.5 * 0.2 + 0.5 * 0.5)
    assert result.se == pytest.approx(math.sqrt(sum(variances)))
    assert result.df == pytest.approx(sum(variances) ** 2 / (variances[0] ** 2 / 4 + variances[1] ** 2 / 3))


def test_p_and_interval_agree_at_degrees_that_are_not_whole():
    result = composite([component(0.5, [1, 0, 0, -1, 1]), component(0.5, [3, 0, 1])])
    assert result.df != round(result.df)
    edge = t_interval(result.delta, result.se, result.df, 1 - result.p)
    assert edge[0] == pytest.approx(0, abs=1e-12)


def test_one_benchmark_with_weight_1_is_itself():
    d = [1, 0, 0, -1, 1, 1]
    result = composite([component(1.0, d)])
    assert result.se == pytest.approx(np.std(d, ddof=1) / math.sqrt(6)) and result.df == pytest.approx(5)


def test_composite_of_the_oracle(oracle):
    case = oracle["composite"]
    rows = list(zip(case["w"], case["d"], case["cluster"], strict=True))
    alone = composite([component(w, d) for w, d, _ in rows])
    assert alone.delta == pytest.approx(case["comp"])
    assert alone.se == pytest.approx(case["se_independent"], abs=1e-12)
    clustered = composite([component(w, d, c) for w, d, c in rows])
    g = case["G"]
    assert clustered.se == pytest.approx(case["se_clustered_cr0"] * math.sqrt(g / (g - 1)), abs=1e-12)
    assert clustered.df == g - 1


def test_a_cluster_shared_by_two_benchmarks_moves_both():
    d, clusters = [1, 0, 0, 1, -1, 1], [0, 1, 2, 3, 4, 5]
    shared = composite([component(0.5, d, clusters), component(0.5, d, clusters)])
    apart = composite([component(0.5, d, clusters), component(0.5, d, [c + 10 for c in clusters])])
    assert shared.se == pytest.approx(composite([component(1.0, d)]).se)
    assert apart.se < shared.se


def test_unclustered_benchmarks_may_stand_beside_clustered_ones():
    result = composite([component(0.5, [1, 0, 1, 0], [0, 0, 1, 1]), component(0.5, [0, 0, 1])])
    assert result.df == 2 + 3 - 1 and result.se > 0


def test_a_benchmark_of_one_item_has_no_error():
    assert composite([component(0.5, [1]), component(0.5, [0, 1, 1])]).se is None
