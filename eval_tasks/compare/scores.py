"""Paired score tables of some benchmarks -> one Comparison. Pure: knows no store, no file and no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from eval_tasks.compare.pairing import BenchmarkArms
from eval_tasks.compare.ruling import ruled
from eval_tasks.compare.testing import Tested, paired_test
from eval_tasks.compare.verdict import check_rule, rule_tests, with_verdicts
from eval_tasks.errors import UserError
from eval_tasks.records import Comparison, DecisionRule
from eval_tasks.stats.multiplicity import null_expectation


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Who is compared. `exploratory_reason`: why a rule does not bind, such as its late registration; '' when it does.

    `sources_of_variance`: what each source contributed, in words. `notes` go to every test. `seeds`: training runs of
    each arm.
    """

    run_a: str
    run_b: str
    label_a: str
    label_b: str
    exploratory_reason: str = ""
    sources_of_variance: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    seeds: tuple[int, int] = (1, 1)


def compare_scores(
    arms: Sequence[BenchmarkArms], sides: Sides, *, rule: DecisionRule | None = None, alpha: float = 0.05
) -> Comparison:
    """Test every benchmark, adjust over all of them, and apply the rule.

    Raises NotComparableError when a benchmark's arms share no item, UserError for a rule that does not fit, DataError
    for duplicate items and values that are no number.
    """
    if not 0 < alpha < 0.5:
        raise UserError(f"alpha {alpha}; it lies between 0 and .5")
    if rule is not None:
        check_rule(rule)
    in_rule = rule.benchmarks if rule is not None else ()
    margin = rule.margin if rule is not None else 0.0
    tested = [
        paired_test(
            replace(a, notes=(*a.notes, *sides.notes)), alpha=alpha, margin=margin if a.benchmark in in_rule else None
        )
        for a in arms
    ]
    tested = with_verdicts(tested, alpha)
    comparison = Comparison(
        run_a=sides.run_a,
        run_b=sides.run_b,
        label_a=sides.label_a,
        label_b=sides.label_b,
        tests=tuple(t.test for t in tested),
        n_expected_by_chance=null_expectation([_discordant(t) for t in tested if t.estimate is not None], alpha),
        alpha=alpha,
        sources_of_variance=dict(sides.sources_of_variance),
        reason="no primary metric: without a decision rule each benchmark has an exploratory verdict, and the "
        "comparison has none",
    )
    if rule is None:
        return comparison
    chosen = rule_tests(rule, tested)
    if min(sides.seeds) < rule.seeds:
        return _too_few_seeds(comparison, rule, sides)
    return ruled(comparison, rule, chosen, exploratory_reason=sides.exploratory_reason)


def _discordant(t: Tested) -> int | None:
    """Discordant items where McNemar's p decides; None where t does."""
    return t.test.n_discordant if t.pairs is not None and t.pairs.clusters is None else None


def _too_few_seeds(comparison: Comparison, rule: DecisionRule, sides: Sides) -> Comparison:
    """The rule asks for a comparison of recipes that these arms are not: it gives no verdict."""
    n_a, n_b = sides.seeds
    reason = (
        f"no verdict: rule {rule.name!r} asks for {rule.seeds} runs of each arm, trained with their own seeds, and "
        f"there {'is' if n_a == 1 else 'are'} {n_a} of A and {n_b} of B"
    )
    return replace(comparison, rule=rule, exploratory=bool(sides.exploratory_reason), reason=reason)
