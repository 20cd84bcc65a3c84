"""Two runs side by side: tests, decision rule, verdict. delta = A - B, A the candidate and B the baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from eval_tasks.digests import digest_value, short_id
from eval_tasks.records.codec import to_json
from eval_tasks.records.item_response import AbilityDifference
from eval_tasks.records.variance import Lineage, RecipeAnswer, VarianceTerm
from eval_tasks.records.verdict import Compatibility, Inconclusive, Multiplicity, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRule:
    """What was decided before the run. `margin` in fractions (or the metric's unit), `direction` says which is better.

    What decides is `components` (benchmark name -> weight, summing to 1: one benchmark, or a composite of several), or
    `primary` (several benchmarks, each decided apart). `multiplicity`: how the primary p-values are adjusted, over
    `primary`, or with one p over all benchmarks of the comparison. `seeds`: runs that each arm must have.
    `kind`: ``superiority`` (q <= alpha), ``superiority_by_margin``, ``non_inferiority``, ``point_and_p``.
    """

    name: str
    kind: Literal["superiority", "superiority_by_margin", "non_inferiority", "point_and_p"]
    metric: str
    components: Mapping[str, float] = field(default_factory=dict)
    alpha: float = 0.05
    margin: float = 0.0
    direction: Literal["higher", "lower"] = "higher"
    registered_at: str = ""
    primary: tuple[str, ...] = ()
    multiplicity: Multiplicity = "none"
    seeds: int = 1

    @property
    def rule_id(self) -> str:
        """Digest of the rule's content, its time of registration apart.

        Fields that came later are left out at their defaults, so that rules of earlier releases keep their ids.
        """
        content = to_json(self)
        content.pop("registered_at")
        for name, default in (("primary", []), ("multiplicity", "none"), ("seeds", 1)):
            if content[name] == default:
                del content[name]
        return short_id(digest_value(content))

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The benchmarks that decide, by name."""
        return self.primary or tuple(self.components)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTest:
    """One benchmark of a comparison. `n_discordant` = b + c; b: only A right, c: only B right (None when continuous).

    `q` is p adjusted by `adjusted_by`: Benjamini-Hochberg over the tested benchmarks, or for a `primary` benchmark of
    the rule as the rule says; its verdict is then the rule's. `ci_fcr` is the interval that agrees with q, where a
    benchmark is called among others that are not (false coverage rate). `mde` is the smallest true difference that
    these data would find with 80 % power. `grader`: whose scores both arms have, '' for plain
    files. A benchmark that could not be tested has `not_tested` set and no p.
    """

    benchmark: str
    metric: str
    compatibility: Compatibility
    method: str
    n_pairs: int
    n_attempted: int
    score_a: float | None
    score_b: float | None
    delta: float | None
    se: float | None
    ci95: tuple[float, float] | None
    p: float | None
    p_exact: float | None = None
    q: float | None = None
    b: int | None = None
    c: int | None = None
    n_discordant: int | None = None
    mde: float | None = None
    n_needed: int | None = None
    verdict: Verdict = "INDISTINGUISHABLE"
    inconclusive: Inconclusive = ""
    not_tested: str = ""
    higher_is_better: bool = True
    unit: str = "fraction"
    contamination: str = "never checked"
    companion_delta: float | None = None
    companion_ci95: tuple[float, float] | None = None
    companion_p: float | None = None
    notes: tuple[str, ...] = ()
    variances: tuple[VarianceTerm, ...] = ()
    primary: bool = False
    adjusted_by: Multiplicity = "bh"
    ci_fcr: tuple[float, float] | None = None
    grader: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The comparison of run A (candidate) with run B (baseline). `verdict` is None without a primary metric.

    `rule_met`: the rule's claim was shown for A (None without a verdict). `composite` is the test of a rule that weighs
    several benchmarks, whose own tests are in `tests`. `question`: what the verdict is about. `recipes` answers for the
    recipes, None where the two arms are of one training run. `further_a`, `further_b`: the other seeds' runs of an arm;
    `seeds_a`, `seeds_b`: the training seeds of all its runs, the first one's first, where somebody said.
    `diagnoses_blob`: digest of the diagnoses kept with it, '' where none were made. `abilities`: by item-response
    weights, beside the tests and never in a verdict.
    """

    run_a: str
    run_b: str
    label_a: str
    label_b: str
    tests: tuple[PairedTest, ...]
    n_expected_by_chance: float
    alpha: float
    rule: DecisionRule | None = None
    exploratory: bool = True
    verdict: Verdict | None = None
    inconclusive: Inconclusive = ""
    reason: str = ""
    sources_of_variance: Mapping[str, str] = field(default_factory=dict)
    rule_met: bool | None = None
    composite: PairedTest | None = None
    lineage: Lineage = "not known"
    question: Literal["checkpoints", "recipes"] = "checkpoints"
    recipes: RecipeAnswer | None = None
    further_a: tuple[str, ...] = ()
    further_b: tuple[str, ...] = ()
    seeds_a: tuple[str, ...] = ()
    seeds_b: tuple[str, ...] = ()
    diagnoses_blob: str = ""
    abilities: tuple[AbilityDifference, ...] = ()

    @property
    def comparison_id(self) -> str:
        """The same runs by the same graders and rule, or without one at the same alpha, are the same comparison.

        Further runs, their seeds, and the seed study that an answer for the recipes rests on make it another one.
        """
        arms = [list(self.further_a), list(self.further_b), list(self.seeds_a), list(self.seeds_b)]
        further = [arms if self.seeds_a or self.seeds_b else arms[:2]] if self.further_a or self.further_b else []
        if self.recipes is not None and self.recipes.study:
            further.append([["seed study", self.recipes.study]])
        asked = self.rule.rule_id if self.rule else self.alpha
        graders = [[test.benchmark, test.grader] for test in self.tests if test.grader]
        return short_id(digest_value([self.run_a, self.run_b, asked, *further, *([graders] if graders else [])]))
