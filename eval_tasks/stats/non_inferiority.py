"""Two graders against the same human labels -> in which categories the new one is no worse, by a stated margin.

Paired on the outputs: Newcombe's interval (1998, method 10) of the difference in agreement, one-sided, Holm over the
categories. Adoption asks for every category, which alone keeps the level (Berger 1982); Holm makes each category's own
claim valid too, and the rule stricter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from eval_tasks.records.agreement import CategoryResult, Outcome
from eval_tasks.stats.equivalence import non_inferiority_newcombe_p
from eval_tasks.stats.influence import FloatArray
from eval_tasks.stats.multiplicity import holm
from eval_tasks.stats.paired import Table, newcombe10, table_of
from eval_tasks.stats.power import discordance, non_inferiority_items_needed


def non_inferior_by_category(
    agrees: Mapping[str, tuple[FloatArray, FloatArray]], *, margin: float, alpha: float = 0.05
) -> list[CategoryResult]:
    """One result per category, in the order given. `agrees`: ones where (new, current) grader agreed with people.

    ``UNDERPOWERED``: nothing shown either way, and too few labels to expect otherwise. ``FAILED``: shown worse, or not
    shown to be within the margin by labels that suffice.
    """
    tables = {category: table_of(new, current) for category, (new, current) in agrees.items()}
    p = np.array([non_inferiority_newcombe_p(table, margin) for table in tables.values()], dtype=np.float64)
    pooled = (sum(t.n_discordant for t in tables.values()), sum(t.n for t in tables.values()))
    return [
        _result(category, table, float(own), float(adjusted), pooled, len(tables), margin, alpha)
        for (category, table), own, adjusted in zip(tables.items(), p, holm(p), strict=True)
    ]


def _result(
    category: str,
    table: Table,
    p: float,
    p_holm: float,
    pooled: tuple[int, int],
    n_categories: int,
    margin: float,
    alpha: float,
) -> CategoryResult:
    n = table.n
    ci = newcombe10(table, 1 - 2 * alpha)
    n_discordant, n_known = (table.n_discordant, n) if n else pooled
    needed = None
    if n_known:
        psi = discordance(n_discordant, n_known)
        needed = math.ceil(non_inferiority_items_needed(margin, psi, alpha / n_categories))
    outcome: Outcome = "FAILED"
    if p_holm <= alpha:
        outcome = "NON_INFERIOR"
    elif ci is None or (ci[1] >= 0 and needed is not None and n < needed):
        outcome = "UNDERPOWERED"
    return CategoryResult(
        category=category,
        n=n,
        agreement_new=(table.both + table.b) / n if n else None,
        agreement_current=(table.both + table.c) / n if n else None,
        n_discordant=table.n_discordant,
        delta=(table.b - table.c) / n if n else None,
        ci=ci,
        p=p,
        p_holm=p_holm,
        outcome=outcome,
        n_needed=needed,
    )
