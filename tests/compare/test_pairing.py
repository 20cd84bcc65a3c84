"""Two tables, aligned by item id."""

from __future__ import annotations

import numpy as np
import pytest

from eval_tasks.compare.pairing import pair
from eval_tasks.errors import DataError, NotComparableError
from tests.compare.arms import ACC, LOSS, arms, table


def test_pairs_are_by_id_and_never_by_position():
    a = table([1.0, 0.0, 1.0], ids=["x", "y", "z"])
    b = table([1.0, 0.0, 1.0], ids=["z", "x", "y"])
    pairs = pair(arms(a, b))
    assert sorted(zip(pairs.a, pairs.b, strict=True)) == [(0.0, 1.0), (1.0, 0.0), (1.0, 1.0)]
    assert not pairs.overlap_only and pairs.n_attempted == 3


def test_items_of_one_arm_only_leave_the_overlap():
    pairs = pair(arms(table([1.0, 0.0], ids=["x", "y"]), table([1.0, 1.0, 0.0], ids=["y", "z", "w"])))
    assert (pairs.a.tolist(), pairs.b.tolist()) == ([0.0], [1.0])
    assert pairs.overlap_only and pairs.n_attempted == 4
    assert (pairs.full_a, pairs.full_b) == (0.5, pytest.approx(2 / 3))


def test_no_common_item_is_refused_with_what_differs():
    apart = arms(table([1.0], ids=["x"]), table([1.0], ids=["y"]), difference="items_digest differs (a in A, b in B)")
    with pytest.raises(NotComparableError, match=r"bench: .*items_digest differs"):
        pair(apart)


def test_missing_excluded_and_invalid_items():
    a = table([1.0, None, None, 0.0, 1.0], status=["ok", "missing", "excluded", "invalid", "ok"])
    b = table([0.0, 1.0, None, 1.0, None], status=["ok", "ok", "excluded", "ok", "missing"])
    pairs = pair(arms(a, b))
    assert pairs.a.tolist() == [1.0, 0.0] and pairs.b.tolist() == [0.0, 1.0]
    assert pairs.n_missing == 2 and pairs.n_attempted == 4
    assert pairs.gap == (-1.0 + 0.0, 0.0 + 1.0), "the lost one of A is 0..1 against 1, the lost one of B 1 against 0..1"


def test_a_loss_without_a_value_bounds_nothing():
    pairs = pair(arms([1.0, None, 2.0], [1.0, 1.0, 1.5], info=LOSS))
    assert pairs.n_missing == 1 and pairs.gap is None


def test_clean_items_and_clusters_follow_their_item():
    a = table([1.0, 0.0, 1.0, 1.0], clusters=["p", "p", None, "q"])
    known = {"i00000": "clean", "i00001": "contaminated", "i00002": "clean"}
    pairs = pair(arms(a, [1.0, 1.0, 0.0, 1.0], clustered=True, contamination=known))
    assert pairs.clean.tolist() == [True, False, True, False]
    names = pairs.clusters.to_pylist()
    assert names[0] == names[1] == "p" and names[2] not in ("p", "q") and names[3] == "q"
    clean = pairs.only_clean()
    assert clean.a.tolist() == [1.0, 1.0] and len(clean.clusters) == 2


@pytest.mark.parametrize("bad", [float("nan"), float("-inf")])
def test_a_number_that_is_none_names_benchmark_arm_and_item(bad):
    with pytest.raises(DataError, match="bench, acc, arm B: item 'i00001'"):
        pair(arms([1.0, 0.0], [1.0, bad]))


def test_two_scores_of_one_item_are_refused():
    with pytest.raises(DataError, match=r"arm A: .*'x' is one"):
        pair(arms(table([1.0, 0.0], ids=["x", "x"]), table([1.0, 1.0], ids=["x", "y"])))


def test_pairing_grows_with_the_items_and_loops_over_none():
    n = 200_000
    rng = np.random.default_rng(0)
    ids = [f"item-{k}" for k in range(n)]
    a, b = (table(list(rng.integers(0, 2, n).astype(float)), ids=order) for order in (ids, ids[::-1]))
    import time

    start = time.process_time()
    pairs = pair(arms(a, b, info=ACC))
    assert len(pairs.a) == n
    assert time.process_time() - start < 2.0
