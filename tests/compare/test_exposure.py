"""What only one arm may have seen, and what its lead on those items is worth."""

from __future__ import annotations

import numpy as np
import pytest

from eval_tasks.compare.exposure import Exposure, one_sided
from eval_tasks.compare.testing import paired_test
from eval_tasks.stats.companion import difference_in_differences
from eval_tasks.store import Store
from tests.compare.arms import arms

NOW = "2026-01-05T00:00:00+00:00"


@pytest.fixture
def checked(store: Store) -> Store:
    store.catalog.save_contamination("bench", "web", "r", {"x": "contaminated", "y": "contaminated", "z": "clean"}, NOW)
    store.catalog.save_contamination("bench", "old", "r", {"x": "clean", "y": "contaminated", "z": "clean"}, NOW)
    return store


def test_items_of_a_corpus_that_one_arm_alone_was_trained_on(checked: Store) -> None:
    found = Exposure(arm="A", item_ids=frozenset({"x"}), corpora=("web",))
    assert one_sided(checked, "bench", ["web", "old"], ["old"]) == found
    assert one_sided(checked, "bench", ["old"], ["web", "old"]) == Exposure(
        arm="B", item_ids=frozenset({"x"}), corpora=("web",)
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [(["web"], []), ([], ["web"]), (["web"], ["web"]), (["web"], ["old"]), (["web", "new"], ["web"])],
)
def test_there_is_no_answer_where_it_is_not_known_who_saw_what(checked: Store, a: list[str], b: list[str]) -> None:
    assert one_sided(checked, "bench", a, b) is None


def test_the_difference_in_differences_and_its_error() -> None:
    differences = np.array([1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, -1.0])
    exposed = np.array([True] * 4 + [False] * 4)
    value, se = difference_in_differences(differences, exposed, ~exposed) or (0.0, 0.0)
    assert value == pytest.approx(0.75 - (-0.25))
    assert se == pytest.approx((0.25 / 4 + 0.25 / 4) ** 0.5)
    assert difference_in_differences(differences[:5], exposed[:5], ~exposed[:5]) is None


def test_the_test_says_it_and_says_when_clean_items_read_otherwise() -> None:
    n = 200
    ids = [f"i{k:05d}" for k in range(n)]
    a = [1.0] * 60 + [1.0, 0.0] * 70
    b = [0.0] * 60 + [1.0, 0.0] * 70
    statuses = {item: "contaminated" if k < 60 else "clean" for k, item in enumerate(ids)}
    exposure = Exposure(arm="A", item_ids=frozenset(ids[:60]), corpora=("web",))
    test = paired_test(arms(a, b, contamination=statuses, exposure=exposure), alpha=0.05, margin=None).test
    (reading,) = [note for note in test.notes if note.startswith("on the clean items alone")]
    assert "no difference shown instead of A higher" in reading
    (found,) = [note for note in test.notes if note.startswith("difference in differences")]
    assert "A - B is +1.0000 (SE 0.0000) higher on the 60 items that stand in web, which A alone" in found
    few = Exposure(arm="B", item_ids=frozenset(ids[:1]), corpora=("web",))
    test = paired_test(arms(a, b, contamination=statuses, exposure=few), alpha=0.05, margin=None).test
    assert any("too few for a difference in differences" in note for note in test.notes)
