"""Which variances a difference carries, and the second question: do the recipes differ, not only the checkpoints?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eval_tasks.records.verdict import Inconclusive, Verdict

Lineage = Literal["one training run", "trained apart", "not known"]
Standing = Literal["measured", "prior", "EXTRAPOLATED", "not measured"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceTerm:
    """One source of noise in a difference A - B. `sd`: its standard deviation there, in the metric's unit.

    `origin` says on what it was measured, and when, or why it was not (`sd` is then None, and it counts as nothing).
    A prior was measured on other runs; EXTRAPOLATED is one from another scale, enlarged for it.
    """

    source: Literal["items", "training seed", "environment", "engine"]
    standing: Standing
    sd: float | None
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeTest:
    """One benchmark, or a composite, under the second question. `se` is the total error, on `df` degrees of freedom.

    `p` is never below the items' own, nor the interval narrower. `q` is p adjusted over the benchmarks. `seeds_needed`:
    runs of each recipe that would settle the margin, None where the items are too few for it. A benchmark without a
    measured seed variance has `not_answerable` set and no p.
    """

    benchmark: str
    metric: str
    delta: float | None
    se: float | None = None
    df: float | None = None
    ci95: tuple[float, float] | None = None
    p: float | None = None
    q: float | None = None
    mde: float | None = None
    seeds_needed: int | None = None
    verdict: Verdict = "INDISTINGUISHABLE"
    inconclusive: Inconclusive = ""
    not_answerable: str = ""
    unit: str = "fraction"
    higher_is_better: bool = True
    variances: tuple[VarianceTerm, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeAnswer:
    """The second question over a suite. `study` is the seed study's ``name@version``, empty when none was used.

    `n_seeds`: runs of A and of B; `paired_by_seed`: each run of A was held against the run of B with its seed. `answer`
    is one sentence; `checkpoints` answers the first question, beside which it stands.
    """

    lineage: Lineage
    answerable: bool
    answer: str
    checkpoints: str = ""
    study: str = ""
    n_seeds: tuple[int, int] = (1, 1)
    paired_by_seed: bool = False
    tests: tuple[RecipeTest, ...] = ()
    composite: RecipeTest | None = None
