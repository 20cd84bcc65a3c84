"""A comparison's tested benchmarks and a seed's variance -> the second question: do the recipes differ?

The first, whether the checkpoints differ, is answered before. The two are never mixed: each has its tests, its q and
its verdicts. A rule decides on the second where the arms were trained apart and the seed's variance is known for all
that it names; else it decides on the checkpoints, and the answer for the recipes says why there is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from eval_tasks.compare.noise import Noise, SeedNoise, seed_term
from eval_tasks.compare.ruling import ruled
from eval_tasks.compare.sentence import MOST_NAMED, amount
from eval_tasks.compare.testing import Tested, carrying
from eval_tasks.compare.verdict import with_verdicts
from eval_tasks.records import Comparison, DecisionRule, PairedTest, RecipeAnswer, RecipeTest
from eval_tasks.records.verdict import DEFAULT_MARGIN
from eval_tasks.stats.recipes import Added, seeds_settling, total_error


def with_recipes(
    comparison: Comparison,
    tested: Sequence[Tested],
    noise: Noise,
    *,
    rule: DecisionRule | None,
    n_seeds: tuple[int, int] = (1, 1),
    exploratory_reason: str = "",
) -> Comparison:
    """The comparison with its answer for the recipes, and with the rule's verdict on them where there is one.

    tested: before any adjustment, the instrument's variance included. `rule`: only one that may decide here.
    """
    if noise.lineage == "one training run" and noise.seeds is None:
        return comparison
    answer = RecipeAnswer(
        lineage=noise.lineage, answerable=False, answer="", checkpoints=listed(comparison.tests), n_seeds=n_seeds
    )
    if noise.seeds is None:
        why = f"not answerable: {noise.unanswerable}"
        return replace(comparison, recipes=replace(answer, answer=why))
    seeds, added = noise.seeds, noise.seeds.by_benchmark()
    alpha = comparison.alpha
    second = with_verdicts([_seeded(t, seeds, added, alpha) for t in tested], alpha)
    answer = replace(answer, study=seeds.reference, paired_by_seed=seeds.design == "pairs")
    decided, why_not = _decided(comparison, second, noise, rule, exploratory_reason)
    of_tests = {t.test.benchmark: t.test for t in second} | {
        test.benchmark: test for test in (decided.tests if decided is not None else ())
    }
    tests = tuple(_recipe_test(t, of_tests[t.test.benchmark], noise, added, n_seeds, alpha) for t in second)
    answerable = any(not test.not_answerable for test in tests)
    composite = None
    if rule is not None and len(rule.components) > 1:
        composite = _of_composite(decided, rule, noise, why_not)
    answer = replace(answer, answerable=answerable, tests=tests, composite=composite)
    if decided is None:
        said = listed(tests) if answerable else f"not answerable: {_reasons(tests)}"
        if why_not and answerable:
            said += f"; rule {rule.name!r} is left with the checkpoints: {why_not}" if rule is not None else ""
        return replace(comparison, recipes=replace(answer, answer=said))
    return replace(
        comparison,
        question="recipes",
        verdict=decided.verdict,
        inconclusive=decided.inconclusive,
        rule_met=decided.rule_met,
        reason=_reason(decided, tests, rule, seeds, exploratory_reason),
        recipes=replace(answer, answer=_by_rule(decided, tests, composite)),
    )


def _seeded(t: Tested, seeds: SeedNoise, added: dict[str, Added], alpha: float) -> Tested:
    """The test with the seed's variance in it; one without takes no part."""
    mine = added.get(t.test.benchmark)
    if t.estimate is None or t.test.p is None:
        return t
    if mine is None:
        why = seeds.absent.get(t.test.benchmark, "its seed variance is not known")
        return Tested(test=replace(t.test, p=None, ci95=None, se=None, mde=None, not_tested=why))
    return carrying(t, (*t.added, mine), alpha)


def _decided(
    comparison: Comparison, second: Sequence[Tested], noise: Noise, rule: DecisionRule | None, exploratory_reason: str
) -> tuple[Comparison | None, str]:
    """What the rule says of the recipes; else None and why it cannot."""
    if rule is None or noise.seeds is None:
        return None, ""
    by_name = {t.test.benchmark: t for t in second}
    chosen = [by_name[name] for name in rule.benchmarks]
    unknown = [t.test for t in chosen if t.estimate is None]
    if unknown:
        return None, "; ".join(f"{test.benchmark}: {test.not_tested}" for test in unknown)
    added: tuple[Added, ...] = ()
    if len(rule.components) > 1:
        own = noise.seeds.of_composite(rule.components)
        if isinstance(own, str):
            return None, own
        added = (*noise.instrument_of_composite(rule.components), own)
    asked = replace(comparison, tests=tuple(t.test for t in second), composite=None)
    found = ruled(asked, rule, chosen, exploratory_reason=exploratory_reason, added=added)
    return (found, "") if found.verdict is not None else (None, found.reason)


def _recipe_test(
    t: Tested, test: PairedTest, noise: Noise, added: dict[str, Added], n_seeds: tuple[int, int], alpha: float
) -> RecipeTest:
    """One benchmark's record; `test` as the rule, if any, left it."""
    seed = added.get(test.benchmark)
    variances = (*test.variances, seed_term(noise.seeds, seed, test.not_tested))
    if test.p is None:
        return RecipeTest(
            benchmark=test.benchmark,
            metric=test.metric,
            delta=test.delta,
            not_answerable=test.not_tested,
            unit=test.unit,
            higher_is_better=test.higher_is_better,
            variances=variances,
        )
    return RecipeTest(
        benchmark=test.benchmark,
        metric=test.metric,
        delta=test.delta,
        se=test.se,
        df=_df(t),
        ci95=test.ci95,
        p=test.p,
        q=test.q,
        mde=test.mde,
        seeds_needed=_seeds_needed(t, noise, seed, n_seeds, alpha),
        verdict=test.verdict,
        inconclusive=test.inconclusive,
        unit=test.unit,
        higher_is_better=test.higher_is_better,
        variances=variances,
    )


def _df(t: Tested) -> float | None:
    if t.estimate is None or t.estimate.se is None:
        return None
    df = total_error(t.estimate.se, t.added, t.estimate.df)[1]
    return df if math.isfinite(df) else None


def _seeds_needed(t: Tested, noise: Noise, seed: Added | None, n_seeds: tuple[int, int], alpha: float) -> int | None:
    """Training runs of each recipe that settle the margin (without one, the difference seen) on these items."""
    if t.estimate is None or t.estimate.se is None or seed is None or noise.seeds is None:
        return None
    target = t.margin if t.margin > 0 else abs(t.estimate.delta)
    if target <= 0:
        return None
    # The variance of a pair's difference is that of two runs.
    per_run = 0.5 if noise.seeds.design == "pairs" else 1.0
    flips = per_run * noise.seeds.runs[t.test.benchmark].flips(t.estimate.n)
    variance = replace(seed.variance, total=per_run * seed.variance.total, flips=per_run * seed.variance.flips)
    of_means = flips * (1 / n_seeds[0] + 1 / n_seeds[1])
    other = sum(a.sd**2 for a in noise.instrument(t.test.benchmark))
    steady = max(0.0, t.estimate.se**2 - of_means) + other
    return seeds_settling(target, steady=steady, flips=flips, seed=variance, alpha=alpha)


def _of_composite(decided: Comparison | None, rule: DecisionRule, noise: Noise, why_not: str) -> RecipeTest:
    if decided is None or decided.composite is None or noise.seeds is None:
        return RecipeTest(benchmark=" + ".join(rule.components), metric=rule.metric, delta=None, not_answerable=why_not)
    test = decided.composite
    own = noise.seeds.of_composite(rule.components)
    term = seed_term(noise.seeds, None if isinstance(own, str) else own, "")
    return RecipeTest(
        benchmark=test.benchmark,
        metric=test.metric,
        delta=test.delta,
        se=test.se,
        ci95=test.ci95,
        p=test.p,
        q=test.q,
        mde=test.mde,
        verdict=test.verdict,
        inconclusive=test.inconclusive,
        unit=test.unit,
        higher_is_better=test.higher_is_better,
        variances=(term,),
    )


def _reason(
    decided: Comparison,
    tests: Sequence[RecipeTest],
    rule: DecisionRule | None,
    seeds: SeedNoise,
    exploratory_reason: str,
) -> str:
    """The rule's reason, with the noise that is in it and, where the data could not tell, what would settle it."""
    noise = f"with the noise between training seeds ({seeds.named})"
    prefix = f"exploratory, since {exploratory_reason}; " if exploratory_reason else ""
    said = f"{prefix}{noise}, {decided.reason.removeprefix(prefix).rstrip('.')}"
    if decided.inconclusive == "UNDERPOWERED" and rule is not None and len(rule.benchmarks) == 1:
        (test,) = [t for t in tests if t.benchmark == rule.benchmarks[0]]
        target = amount(rule.margin or DEFAULT_MARGIN, test.unit)
        if test.unit == "fraction" or rule.margin > 0:
            said += (
                f"; no number of training runs would settle {target} on these items"
                if test.seeds_needed is None
                else f"; about {test.seeds_needed:,} training runs of each recipe would settle {target}"
            )
    return said + "."


def _by_rule(decided: Comparison, tests: Sequence[RecipeTest], composite: RecipeTest | None) -> str:
    said = {"A better": "yes, A's is better", "B better": "yes, B's is better"}.get(decided.verdict or "", "not shown")
    rule = decided.rule.name if decided.rule is not None else ""
    more = {"EQUIVALENT": ": any difference lies within the margin", "UNDERPOWERED": ": the data cannot tell"}
    others = "" if composite is not None else f"; by benchmark: {listed(tests)}"
    return f"{said}, by rule {rule!r}{more.get(decided.inconclusive, '')}{others}"


def listed(tests: Sequence[PairedTest | RecipeTest]) -> str:
    """Which benchmarks show a difference, which do not, and which have no answer, in words."""
    groups: dict[str, list[str]] = {}
    for test in tests:
        missing = test.not_answerable if isinstance(test, RecipeTest) else test.not_tested
        said = "not answerable" if missing else "EQUIVALENT" if test.inconclusive == "EQUIVALENT" else test.verdict
        groups.setdefault({"INDISTINGUISHABLE": "no difference shown"}.get(said, said), []).append(test.benchmark)
    order = ("A better", "B better", "EQUIVALENT", "no difference shown", "not answerable")
    return "; ".join(f"{said} on {_names(groups[said])}" for said in order if said in groups)


def _names(names: Sequence[str]) -> str:
    return f"{len(names)} benchmarks" if len(names) > MOST_NAMED else ", ".join(names)


def _reasons(tests: Sequence[RecipeTest]) -> str:
    reasons = list(dict.fromkeys(test.not_answerable for test in tests))
    return "; ".join(reasons[:2]) + (f" (and {len(reasons) - 2} more reasons)" if len(reasons) > 2 else "")
