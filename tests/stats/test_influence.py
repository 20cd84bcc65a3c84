"""Influences and the errors made of them."""

from __future__ import annotations

import numpy as np
import pytest

from eval_tasks.stats.influence import clustered_error, pooled_influences, standard_error, standard_error_cr2


def test_influences_sum_to_zero_and_give_the_textbook_error():
    values = np.array([1.0, 2.0, 4.0, 9.0])
    score, influences = pooled_influences(values)
    assert score == 4.0 and influences.sum() == pytest.approx(0.0, abs=1e-15)
    assert standard_error(influences) == (pytest.approx(values.std(ddof=1) / 2), 4)


def test_weighted_influences_sum_to_zero():
    _, influences = pooled_influences(np.array([1.0, 2.0, 4.0]), np.array([3.0, 1.0, 0.5]))
    assert influences.sum() == pytest.approx(0.0, abs=1e-15)


def test_one_unit_has_no_error():
    assert standard_error(np.array([0.5])) == (None, 1)
    assert standard_error_cr2(np.array([0.5, -0.5]), np.array([3, 3])) == (None, None)


def test_cr2_is_cr1_with_g_minus_1_degrees_when_clusters_are_equal():
    rng = np.random.default_rng(0)
    _, influences = pooled_influences(rng.normal(size=60))
    clusters = np.repeat(np.arange(12), 5)
    se, df = standard_error_cr2(influences, clusters)
    assert se == pytest.approx(standard_error(influences, clusters)[0])
    assert df == pytest.approx(11.0)


def test_cr2_against_its_matrix_definition():
    """Bell and McCaffrey 2002 for an intercept: A_g = (I - 11'/n)^(-1/2), built and applied in full."""
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(4), [9, 4, 2, 1])
    values, n = rng.normal(size=16), 16
    residuals, annihilator = values - values.mean(), np.eye(16) - 1 / 16
    total, rows = 0.0, []
    for g in range(4):
        members = np.flatnonzero(clusters == g)
        eigenvalues, vectors = np.linalg.eigh(np.eye(len(members)) - 1 / n)
        adjust = vectors @ np.diag(eigenvalues**-0.5) @ vectors.T
        row = np.ones(len(members)) @ adjust
        total += (row @ residuals[members]) ** 2 / n**2
        rows.append(row @ annihilator[members] / n)
    gram = np.array(rows) @ np.array(rows).T
    se, df = standard_error_cr2(residuals / n, clusters)
    assert se == pytest.approx(np.sqrt(total))
    assert df == pytest.approx(np.trace(gram) ** 2 / np.sum(gram**2))


def test_cr2_for_few_clusters_and_for_one_large_one():
    rng = np.random.default_rng(1)
    for sizes, method in (([4] * 49, "CR2"), ([4] * 50, "CR1"), ([4] * 99 + [40], "CR2"), ([1] * 400, "CR1")):
        clusters = np.repeat(np.arange(len(sizes)), sizes)
        values = rng.normal(size=len(clusters))
        _, influences = pooled_influences(values)
        se, df, found = clustered_error(influences, clusters)
        assert found == method and se > 0
        assert df == pytest.approx(len(sizes) - 1) if len(set(sizes)) == 1 else 50 < df < 70
    assert clustered_error(np.array([0.5, -0.5]), np.array([7, 7])) == (None, 0, "CR1")


def test_cr2_of_two_clusters_has_one_degree_of_freedom():
    assert standard_error_cr2(np.array([0.2, -0.1, -0.1]), np.array([0, 1, 1]))[1] == pytest.approx(1.0)
