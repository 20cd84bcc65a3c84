"""A run's score per stratum and category, as a hand count gives it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eval_tasks.breakdown import breakdown
from eval_tasks.errors import UserError
from eval_tasks.store import Store
from tests import answered as by_hand
from tests.planned import N_CHOICE

answered, checkpoint = by_hand.answered, by_hand.checkpoint
ITEM = {"id": "item_id", "target": "answer", "stratum": "subject"}
Answered = Callable[..., str]


def lost(name: str, n: int) -> dict[str, object]:
    """The first even item is lost; the last odd one has no finite number."""
    if name == "colours" and n == 0:
        return {"status": "missing", "reason": "node lost", "logprobs": (), "token_logprobs": ()}
    if name == "colours" and n == N_CHOICE - 1:
        return {"status": "invalid", "reason": "non-finite logits"}
    return {}


def colours_id(store: Store) -> str:
    return store.catalog.benchmark("colours").benchmark_id


def test_strata_and_categories_add_up_to_the_whole(store: Store, answered: Answered) -> None:
    categories = {"all": ["even", "odd"]}
    run_id = answered(lost, item={**ITEM, "category": "subject", "categories": categories})
    found = breakdown(store, run_id, colours_id(store), by="stratum")
    even, odd = found.groups
    assert (even.group, even.n, even.n_missing) == ("even", N_CHOICE // 2 - 1, 1)
    assert (odd.group, odd.n, odd.n_missing) == ("odd", N_CHOICE // 2, 0)
    right = sum((n // 2) % 4 == n % 4 for n in range(1, N_CHOICE - 1, 2))
    assert odd.score == pytest.approx(right / odd.n)
    (whole,) = breakdown(store, run_id, colours_id(store), by="category").groups
    measured = next(m for m in store.catalog.measurements(run_id) if m.benchmark == "colours" and m.primary)
    assert (whole.group, whole.score, whole.n, whole.ci95) == ("all", measured.score, measured.n, measured.ci95)
    assert (found.micro.score, found.micro.n, found.micro.ci95) == (measured.score, measured.n, measured.ci95)
    macro = found.macro
    assert (macro.score, macro.n) == (pytest.approx((even.score + odd.score) / 2), 2)
    assert macro.se == pytest.approx((even.se**2 + odd.se**2) ** 0.5 / 2)
    assert macro.ci95[0] == pytest.approx(macro.score - 1.95996 * macro.se - even.score / 2 / (even.n + 1), abs=1e-5)


def test_what_is_not_declared_is_refused(store: Store, answered: Answered) -> None:
    run_id = answered()
    with pytest.raises(UserError, match=r"'colours' declares no category: name a column in item\.category"):
        breakdown(store, run_id, colours_id(store), by="category")
    with pytest.raises(UserError, match="no metric 'acc_nrom'; close: 'acc_norm'"):
        breakdown(store, run_id, colours_id(store), by="stratum", metric="acc_nrom")
