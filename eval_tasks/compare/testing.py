"""Aligned pairs of one benchmark -> its paired test: difference, interval, p, power, and how it reads when clean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from eval_tasks.compare.pairing import BenchmarkArms, Pairs, pair
from eval_tasks.records import PairedTest
from eval_tasks.records.verdict import DEFAULT_MARGIN
from eval_tasks.stats.companion import difference_in_differences
from eval_tasks.stats.equivalence import equivalence_p, tost_p
from eval_tasks.stats.influence import IntArray
from eval_tasks.stats.intervals import Interval
from eval_tasks.stats.item_scores import cluster_codes
from eval_tasks.stats.paired import PairedEstimate, paired_binary, paired_continuous, sign_flip_p
from eval_tasks.stats.power import discordance, mde_from_se, paired_items_needed, paired_mde
from eval_tasks.stats.recipes import Added, recipe_estimate

SIGN_FLIP_LIMIT = 5_000
"""Pairs up to which a continuous test is checked by sign flips; beyond, the mean is normal enough and it costs time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """A benchmark's test as a record, with what the verdict and the composite still need of it.

    `estimate` is None when the benchmark could not be tested. `p_equivalence` is the two one-sided tests' p. `added`:
    variances beside the items', which test, interval and p_equivalence hold.
    """

    test: PairedTest
    estimate: PairedEstimate | None = None
    pairs: Pairs | None = None
    margin: float = 0.0
    p_equivalence: float | None = None
    added: tuple[Added, ...] = ()

    def interval(self, confidence: float) -> Interval | None:
        """The difference's interval under its whole error, widened to what missing items could be."""
        if self.estimate is None or self.pairs is None:
            return None
        own = self.estimate.interval(confidence)
        if self.added and self.estimate.se is not None:
            whole = recipe_estimate(
                self.estimate.delta, self.estimate.se, self.added, pair_df=self.estimate.df, alpha=1 - confidence
            ).ci
            own = whole if own is None else (min(own[0], whole[0]), max(own[1], whole[1]))
        return widened(own, self.pairs)


def paired_test(arms: BenchmarkArms, *, alpha: float, margin: float | None) -> Tested:
    """Test one benchmark. margin: the rule's, in the metric's own unit; None takes 1 point for fractions.

    Raises NotComparableError when the arms share no item, DataError for duplicates and values that are no number.
    """
    if arms.not_tested:
        return Tested(test=untested(arms, arms.not_tested))
    pairs = pair(arms)
    if len(pairs.a) == 0:
        return Tested(test=untested(arms, "no item has a score in both runs", n_attempted=pairs.n_attempted))
    estimate = estimate_of(arms, pairs)
    if margin is None or margin <= 0:
        margin = DEFAULT_MARGIN if arms.info.unit == "fraction" else 0.0
    p_equivalence = equivalence_p(estimate, margin) if margin > 0 else None
    if estimate.p is None:
        reason = (
            "one cluster only: no spread to test with" if arms.clustered else "one item only: no spread to test with"
        )
        return Tested(
            test=_record(arms, pairs, estimate, alpha=alpha, margin=margin, not_tested=reason),
            margin=margin,
            pairs=pairs,
        )
    test = _record(arms, pairs, estimate, alpha=alpha, margin=margin)
    return Tested(test=test, estimate=estimate, pairs=pairs, margin=margin, p_equivalence=p_equivalence)


def carrying(t: Tested, added: Sequence[Added], alpha: float) -> Tested:
    """The test under further variances: p is never smaller for them, no interval narrower.

    More items settle nothing then, so that none are asked for.
    """
    if not added or t.estimate is None or t.estimate.se is None or t.test.p is None:
        return t
    delta, se, df = t.estimate.delta, t.estimate.se, t.estimate.df
    found = recipe_estimate(delta, se, added, pair_df=df, alpha=alpha)
    same = t.p_equivalence
    if same is not None:
        same = max(same, tost_p(delta, found.se, found.df, t.margin))
    wider = replace(t, added=tuple(added), p_equivalence=same)
    test = replace(
        t.test,
        se=found.se,
        ci95=wider.interval(0.95),
        p=max(t.test.p, found.p),
        mde=max(t.test.mde or 0.0, found.mde),
        n_needed=None,
    )
    return replace(wider, test=test)


def estimate_of(arms: BenchmarkArms, pairs: Pairs) -> PairedEstimate:
    """McNemar for right-or-wrong items that count alike, t for the rest, within clusters or strata where declared."""
    clusters = _codes(pairs)
    if arms.info.binary and pairs.weights is None:
        return paired_binary(pairs.a, pairs.b, clusters, pairs.strata)
    return paired_continuous(pairs.a, pairs.b, clusters, pairs.weights, pairs.strata)


def _codes(pairs: Pairs) -> IntArray | None:
    """Cluster codes of the pairs; None when the benchmark declares no clusters."""
    return None if pairs.clusters is None else cluster_codes(pairs.clusters)


def untested(arms: BenchmarkArms, reason: str, n_attempted: int = 0) -> PairedTest:
    """A benchmark that takes no part, with the reason."""
    return PairedTest(
        benchmark=arms.benchmark,
        metric=arms.metric,
        compatibility=arms.compatibility,
        method="none",
        n_pairs=0,
        n_attempted=n_attempted or max(arms.a.num_rows, arms.b.num_rows),
        score_a=None,
        score_b=None,
        delta=None,
        se=None,
        ci95=None,
        p=None,
        not_tested=reason,
        higher_is_better=arms.info.higher_is_better,
        unit=arms.info.unit,
        contamination=arms.contamination_note,
        notes=arms.notes,
        grader=arms.grader,
    )


def widened(interval: Interval | None, pairs: Pairs) -> Interval | None:
    """An interval of the mean difference, with the missing items added at their worst and at their best."""
    if interval is None or pairs.n_missing == 0 or pairs.gap is None:
        return interval
    n, total = len(pairs.a), len(pairs.a) + pairs.n_missing
    low = min(interval[0], (n * interval[0] + pairs.gap[0]) / total)
    high = max(interval[1], (n * interval[1] + pairs.gap[1]) / total)
    return low, high


def _record(
    arms: BenchmarkArms,
    pairs: Pairs,
    estimate: PairedEstimate,
    *,
    alpha: float,
    margin: float,
    not_tested: str = "",
) -> PairedTest:
    mde, n_needed = _power(arms, estimate, alpha, margin)
    compatibility = (
        "PARTIAL" if pairs.overlap_only and arms.compatibility in ("SCORE", "PAIRED") else arms.compatibility
    )
    ci95 = widened(estimate.interval(), pairs)
    clean = _clean(arms, pairs)
    table = estimate.table
    notes = (*arms.notes, *_notes(arms, pairs, estimate, ci95, compatibility, alpha))
    if clean is not None and _reading(clean, alpha) != _reading(estimate, alpha):
        notes += (
            f"on the clean items alone the test reads differently: {_READINGS[_reading(clean, alpha)]} instead of "
            f"{_READINGS[_reading(estimate, alpha)]}; see the companion",
        )
    notes += _exposure_notes(arms, pairs)
    return PairedTest(
        benchmark=arms.benchmark,
        metric=arms.metric,
        compatibility=compatibility,
        method=estimate.method,
        n_pairs=estimate.n,
        n_attempted=pairs.n_attempted,
        score_a=estimate.score_a,
        score_b=estimate.score_b,
        delta=estimate.delta,
        se=estimate.se,
        ci95=ci95,
        p=None if not_tested else estimate.p,
        p_exact=estimate.p_exact,
        b=table.b if table else None,
        c=table.c if table else None,
        n_discordant=table.n_discordant if table else None,
        mde=mde,
        n_needed=n_needed,
        not_tested=not_tested,
        higher_is_better=arms.info.higher_is_better,
        unit=arms.info.unit,
        contamination=arms.contamination_note,
        companion_delta=clean.delta if clean else None,
        companion_ci95=clean.interval() if clean else None,
        companion_p=clean.p if clean else None,
        notes=notes,
        grader=arms.grader,
    )


def _exposure_notes(arms: BenchmarkArms, pairs: Pairs) -> tuple[str, ...]:
    """The difference in differences, where one arm alone was trained on corpora that hold items."""
    if arms.exposure is None or pairs.exposed is None or pairs.clean is None:
        return ()
    who, where = arms.exposure.arm, ", ".join(arms.exposure.corpora)
    n = int(pairs.exposed.sum())
    found = difference_in_differences(pairs.a - pairs.b, pairs.exposed, pairs.clean)
    if found is None:
        few = f"{n} items stand in {where}, which {who} alone was trained on: too few for a difference in differences"
        return (few,)
    value, se = found
    n_clean = int((pairs.clean & ~pairs.exposed).sum())
    return (
        f"difference in differences: A - B is {value:+.4f} (SE {se:.4f}) higher on the {n} items that stand in "
        f"{where}, which {who} alone was trained on, than on the {n_clean} clean ones",
    )


_READINGS = {1: "A higher", -1: "B higher", 0: "no difference shown"}


def _reading(estimate: PairedEstimate, alpha: float) -> int:
    """1 for A higher, -1 for B higher, 0 for no difference shown at p <= alpha."""
    if estimate.p is None or estimate.p > alpha:
        return 0
    return 1 if estimate.delta > 0 else -1


def _clean(arms: BenchmarkArms, pairs: Pairs) -> PairedEstimate | None:
    """The same test on the items known to be clean; None when never checked or when no item is clean."""
    if pairs.clean is None or not pairs.clean.any():
        return None
    return estimate_of(arms, pairs.only_clean())


def _power(
    arms: BenchmarkArms, estimate: PairedEstimate, alpha: float, margin: float
) -> tuple[float | None, int | None]:
    """Smallest difference that would be found, and items needed for the margin (without one, for the difference seen).

    From the observed discordance where McNemar decides; otherwise from the standard error.
    """
    target = margin if margin > 0 else abs(estimate.delta)
    if estimate.table is not None and not arms.clustered:
        psi = discordance(estimate.table.n_discordant, estimate.n)
        needed = math.ceil(paired_items_needed(target, psi, alpha)) if 0 < target <= 1 else None
        return paired_mde(estimate.n, psi, alpha), needed
    if estimate.se is None or estimate.df < 1:
        return None, None
    mde = mde_from_se(estimate.se, estimate.df, alpha)
    if mde == 0 and estimate.table is not None:
        psi = discordance(estimate.table.n_discordant, round(estimate.df) + 1)
        mde = paired_mde(round(estimate.df) + 1, psi, alpha)
    if mde == 0 or target == 0:
        return mde or None, None
    return mde, math.ceil(estimate.n * (mde / target) ** 2)


def _notes(
    arms: BenchmarkArms,
    pairs: Pairs,
    estimate: PairedEstimate,
    ci95: Interval | None,
    compatibility: str,
    alpha: float,
) -> tuple[str, ...]:
    notes = []
    if compatibility == "PAIRED":
        notes.append(
            f"PAIRED: {arms.difference or 'the instruments differ'}: paired by item, absolute scores are not comparable"
        )
    if compatibility == "PARTIAL":
        full = (
            f"A {_plain(pairs.full_a)} on {arms.a.num_rows} items, B {_plain(pairs.full_b)} on {arms.b.num_rows} items"
        )
        notes.append(
            f"PARTIAL: tested on the {estimate.n} items both have; the full scores are not comparable: {full}"
            + (f" ({arms.difference})" if arms.difference else "")
        )
    if pairs.n_missing:
        bounded = "the interval is widened to what they could be" if pairs.gap else "they bound nothing in this metric"
        notes.append(f"{pairs.n_missing} items have no score in an arm: {bounded}")
    if arms.clustered and estimate.p_mid is not None:
        notes.append(f"mid-p on items, clusters ignored: {estimate.p_mid:.4g}")
    if estimate.table is None and estimate.n <= SIGN_FLIP_LIMIT and pairs.weights is None:
        notes.append(_permutation_note(pairs, estimate, alpha))
    p = estimate.p
    if p is not None and ci95 is not None and (p <= alpha) != (not ci95[0] <= 0 <= ci95[1]):
        notes.append("the test and the interval disagree about zero: the test decides, the interval describes")
    return tuple(notes)


def _permutation_note(pairs: Pairs, estimate: PairedEstimate, alpha: float) -> str:
    p = sign_flip_p(pairs.a - pairs.b, _codes(pairs))
    agree = estimate.p is None or (p <= alpha) == (estimate.p <= alpha)
    return f"sign-flip permutation check: p = {p:.4g}" + ("" if agree else ", which disagrees with the t test")


def _plain(score: float | None) -> str:
    return "none" if score is None else f"{score:.4f}"
