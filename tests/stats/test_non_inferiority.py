"""Non-inferiority by category: the test's own size, and what is called which."""

from __future__ import annotations

import numpy as np
import pytest

from eval_tasks.stats.equivalence import non_inferiority_newcombe_p
from eval_tasks.stats.influence import FloatArray
from eval_tasks.stats.non_inferiority import non_inferior_by_category
from eval_tasks.stats.paired import Table, newcombe10
from eval_tasks.stats.power import non_inferiority_items_needed


def agrees(both: int, new: int, current: int, neither: int) -> tuple[FloatArray, FloatArray]:
    """Where (new, current) agree with people, by counts."""
    a = [1.0] * both + [1.0] * new + [0.0] * current + [0.0] * neither
    b = [1.0] * both + [0.0] * new + [1.0] * current + [0.0] * neither
    return np.array(a), np.array(b)


def test_p_is_where_the_one_sided_bound_meets_the_margin() -> None:
    table = Table(both=800, b=20, c=30, neither=150)
    p = non_inferiority_newcombe_p(table, 0.02)
    interval = newcombe10(table, 1 - 2 * p)
    assert interval is not None
    assert interval[0] == pytest.approx(-0.02, abs=1e-9)
    assert 0 < p < 0.5


@pytest.mark.parametrize("table", [Table(both=0, b=0, c=0, neither=0), Table(both=5, b=0, c=5, neither=0)])
def test_no_labels_or_a_loss_at_the_margin_show_nothing(table: Table) -> None:
    assert non_inferiority_newcombe_p(table, 0.5) == 1.0


def test_the_level_holds_where_the_loss_is_the_margin() -> None:
    draw = np.random.default_rng(7)
    rows = draw.multinomial(400, [0.80, 0.025, 0.075, 0.10], size=1_000)
    shown = [
        non_inferiority_newcombe_p(Table(both=int(a), b=int(b), c=int(c), neither=int(d)), 0.05) <= 0.05
        for a, b, c, d in rows
    ]
    assert np.mean(shown) < 0.07


def test_a_category_that_fails_is_named_whatever_the_total() -> None:
    results = non_inferior_by_category({"maths": agrees(900, 60, 0, 40), "law": agrees(700, 0, 100, 200)}, margin=0.02)
    assert [(r.category, r.outcome) for r in results] == [("maths", "NON_INFERIOR"), ("law", "FAILED")]
    assert results[1].delta == -0.1


def test_few_labels_are_underpowered_and_say_how_many_would_do() -> None:
    (result,) = non_inferior_by_category({"": agrees(18, 0, 0, 2)}, margin=0.02)
    assert result.outcome == "UNDERPOWERED"
    assert result.n_needed is not None
    assert result.n_needed > 20


def test_enough_labels_that_do_not_show_it_have_failed() -> None:
    (result,) = non_inferior_by_category({"": agrees(3_000, 40, 90, 300)}, margin=0.02)
    assert (result.outcome, result.n_needed is not None and result.n_needed < result.n) == ("FAILED", True)


def test_an_empty_category_borrows_what_is_known_of_the_others() -> None:
    results = non_inferior_by_category({"full": agrees(800, 20, 20, 160), "empty": agrees(0, 0, 0, 0)}, margin=0.05)
    assert [r.outcome for r in results] == ["NON_INFERIOR", "UNDERPOWERED"]
    assert results[1].delta is None
    assert results[1].n_needed == results[0].n_needed


def test_nothing_at_all_is_underpowered_without_a_number() -> None:
    (result,) = non_inferior_by_category({"": agrees(0, 0, 0, 0)}, margin=0.05)
    assert (result.outcome, result.n_needed) == ("UNDERPOWERED", None)


def test_holm_is_over_the_categories() -> None:
    one = agrees(800, 20, 30, 150)
    (alone,) = non_inferior_by_category({"a": one}, margin=0.02)
    together = non_inferior_by_category({"a": one, "b": one, "c": one}, margin=0.02)
    assert alone.p_holm == alone.p
    assert [r.p_holm for r in together] == pytest.approx([min(1.0, 3 * alone.p)] * 3)


def test_the_labels_needed_show_it_about_four_times_in_five() -> None:
    draw = np.random.default_rng(11)
    n = int(np.ceil(non_inferiority_items_needed(0.05, 0.1)))
    shown = [
        non_inferiority_newcombe_p(Table(both=int(a), b=int(b), c=int(c), neither=int(d)), 0.05) <= 0.05
        for a, b, c, d in draw.multinomial(n, [0.85, 0.05, 0.05, 0.05], size=400)
    ]
    assert 0.70 < np.mean(shown) < 0.88
