"""Paired score tables of some benchmarks -> one Comparison. Pure: knows no store, no file and no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from eval_tasks.compare.noise import Noise, items_term
from eval_tasks.compare.pairing import BenchmarkArms
from eval_tasks.compare.recipes import with_recipes
from eval_tasks.compare.ruling import ruled
from eval_tasks.compare.testing import Tested, carrying, paired_test
from eval_tasks.compare.verdict import check_rule, rule_tests, with_verdicts
from eval_tasks.errors import UserError
from eval_tasks.records import Comparison, DecisionRule
from eval_tasks.stats.multiplicity import null_expectation

NOT_KNOWN = Noise(lineage="not known", unanswerable="nobody said what training runs the scores are of")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Who is compared. `exploratory_reason`: why a rule does not bind, such as its late registration; '' when it does.

    `sources_of_variance`: what each source contributed, in words. `notes` go to every test. `noise`: what is known
    beside the items. `further_a`, `further_b`, `seeds_a`, `seeds_b`: as in `Comparison`.
    """

    run_a: str
    run_b: str
    label_a: str
    label_b: str
    exploratory_reason: str = ""
    sources_of_variance: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    noise: Noise = NOT_KNOWN
    further_a: tuple[str, ...] = ()
    further_b: tuple[str, ...] = ()
    seeds_a: tuple[str, ...] = ()
    seeds_b: tuple[str, ...] = ()

    @property
    def n_seeds(self) -> tuple[int, int]:
        """Training runs of each arm."""
        return 1 + len(self.further_a), 1 + len(self.further_b)


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
    first = _checkpoints(arms, sides, rule, alpha)
    tested = with_verdicts(first, alpha)
    comparison = Comparison(
        run_a=sides.run_a,
        run_b=sides.run_b,
        label_a=sides.label_a,
        label_b=sides.label_b,
        tests=tuple(t.test for t in tested),
        n_expected_by_chance=null_expectation([_discordant(t) for t in tested if t.estimate is not None], alpha),
        alpha=alpha,
        sources_of_variance=dict(sides.sources_of_variance),
        lineage=sides.noise.lineage,
        further_a=sides.further_a,
        further_b=sides.further_b,
        seeds_a=sides.seeds_a,
        seeds_b=sides.seeds_b,
        reason="no primary metric: without a decision rule each benchmark has an exploratory verdict, and the "
        "comparison has none",
    )
    binding = rule
    if rule is not None:
        chosen = rule_tests(rule, tested)
        if min(sides.n_seeds) < rule.seeds:
            comparison, binding = _too_few_seeds(comparison, rule, sides), None
        else:
            added = sides.noise.instrument_of_composite(rule.components) if len(rule.components) > 1 else ()
            comparison = ruled(comparison, rule, chosen, exploratory_reason=sides.exploratory_reason, added=added)
    return with_recipes(
        comparison,
        first,
        sides.noise,
        rule=binding,
        n_seeds=sides.n_seeds,
        exploratory_reason=sides.exploratory_reason,
    )


def _checkpoints(arms: Sequence[BenchmarkArms], sides: Sides, rule: DecisionRule | None, alpha: float) -> list[Tested]:
    """Every benchmark tested on its items, with what engine and environments do, before any adjustment."""
    in_rule = rule.benchmarks if rule is not None else ()
    margin = rule.margin if rule is not None else 0.0
    result = []
    for a in arms:
        instrument = sides.noise.instruments.get(a.benchmark)
        note = (instrument.note,) if instrument is not None and instrument.note else ()
        noted = replace(a, notes=(*a.notes, *note, *sides.notes))
        t = paired_test(noted, alpha=alpha, margin=margin if a.benchmark in in_rule else None)
        if t.estimate is not None:
            terms = (items_term(t.estimate.se, t.estimate.n), *((instrument.term,) if instrument is not None else ()))
            t = replace(t, test=replace(t.test, variances=terms))
        result.append(carrying(t, sides.noise.instrument(a.benchmark), alpha))
    return result


def _discordant(t: Tested) -> int | None:
    """Discordant items where McNemar's p decides; None where t does."""
    return t.test.n_discordant if t.pairs is not None and t.pairs.clusters is None else None


def _too_few_seeds(comparison: Comparison, rule: DecisionRule, sides: Sides) -> Comparison:
    """The rule asks for a comparison of recipes that these arms are not: it gives no verdict."""
    n_a, n_b = sides.n_seeds
    reason = (
        f"no verdict: rule {rule.name!r} asks for {rule.seeds} runs of each arm, trained with their own seeds, and "
        f"there {'is' if n_a == 1 else 'are'} {n_a} of A and {n_b} of B"
    )
    return replace(comparison, rule=rule, exploratory=bool(sides.exploratory_reason), reason=reason)
