"""What people said of fixed outputs, what graders said of the same, and whether a grader may take another's place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from eval_tasks.digests import digest_value, short_id
from eval_tasks.records.codec import to_json

Outcome = Literal["NON_INFERIOR", "FAILED", "UNDERPOWERED"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementItem:
    """One output with its labels, by rater. A label is a category (1 for right, 0 for wrong), never a measurement.

    `run_id` and `source_item` name the stored answer that it is, '' for an output that came from a file.
    """

    item_id: str
    output: str
    labels: Mapping[str, float]
    category: str = ""
    prompt: str = ""
    target: str = ""
    run_id: str = ""
    source_item: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementSet:
    """A fixed set of labelled outputs. `items_blob` holds its AgreementItems; `categories` counts them by category.

    `benchmark_id` is '' for a set that belongs to no registered benchmark, and `runs` are empty for one from a file.
    """

    name: str
    version: str
    items_blob: str
    n_items: int
    raters: tuple[str, ...]
    categories: Mapping[str, int]
    created_at: str
    benchmark: str = ""
    benchmark_id: str = ""
    runs: tuple[str, ...] = ()
    description: str = ""

    @property
    def reference(self) -> str:
        """Name and version."""
        return f"{self.name}@{self.version}"

    @property
    def set_digest(self) -> str:
        """Digest of the items, their labels, and the benchmark they belong to."""
        return digest_value([self.items_blob, self.benchmark_id])


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderVerdicts:
    """What one grader said of the outputs of a set: item_id -> label. An item without one got no verdict."""

    set_digest: str
    grader: str
    created_at: str
    verdicts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far two raters agree on `n` outputs, as a share and as Cohen's kappa.

    `kappa` is None where it is not defined, with `kappa_note` saying why; the note also names how an interval was made
    that the usual formula cannot give.
    """

    n: int
    n_agree: int
    agreement: float | None
    ci95: tuple[float, float] | None
    kappa: float | None
    kappa_ci95: tuple[float, float] | None
    kappa_note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryResult:
    """One category of a qualification. `delta` = agreement of the new grader - agreement of the one in use.

    `ci` is the interval whose lower end is the one-sided bound at alpha. `p`: of a loss of the margin or more; `p_holm`
    is adjusted over the categories, and decides. `n_needed`: labels that show "no worse" four times in five where the
    two graders are equally good; None when nothing is known of how often they differ.
    """

    category: str
    n: int
    agreement_new: float | None
    agreement_current: float | None
    n_discordant: int
    delta: float | None
    ci: tuple[float, float] | None
    p: float
    p_holm: float
    outcome: Outcome
    n_needed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Qualification:
    """Whether `grader` may take the place of `against`: only when it is not inferior in any category.

    `overall_new` and `overall_current` are shown and decide nothing. `n_tied`: outputs that people are divided over,
    which are in no category's count. `n_unjudged_new`: outputs that the grader gave no verdict on, counted as
    disagreement.
    """

    grader: str
    against: str
    agreement_set: str
    set_digest: str
    margin: float
    alpha: float
    adopted: bool
    reason: str
    categories: tuple[CategoryResult, ...]
    overall_new: Agreement
    overall_current: Agreement
    n_tied: int
    n_unjudged_new: int
    n_unjudged_current: int
    qualified_at: str

    @property
    def qualification_id(self) -> str:
        """Digest of all of it but the time: the same question on the same set has one answer."""
        content = to_json(self)
        content.pop("qualified_at")
        return short_id(digest_value(content))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderInUse:
    """The grader that stands for a benchmark from a moment on: by a qualification, or put in use by a person."""

    benchmark: str
    grader: str
    since: str
    reason: str
    qualification_id: str = ""
