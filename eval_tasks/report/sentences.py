"""A `ReportView` in, the sentences that every rendering says alike out: title, verdict, limits, what is not claimed."""

from __future__ import annotations

import math

from eval_tasks.records import Comparison, ImportedRows, Measurement, PairedTest, RecipeAnswer, RecipeTest, Run
from eval_tasks.records.engine import MOCK_MARK
from eval_tasks.report.numbers import amount, change, count, counts_in_words, decimal, interval, share, unit_name
from eval_tasks.report.view import ReportView

# z(0.975) + z(0.80): a difference of this many standard errors is found with 80 % power at alpha 0.05, two-sided.
_DETECTABLE_ERRORS = 2.8016

_NOT_CLAIMED = {
    "health": (
        "This is a health report: it answers whether the training run is alive. It finds large effects (divergence, a "
        "broken tokenizer or data set, a domain that was forgotten) and is not a progress curve: small differences "
        "from one checkpoint to the next are not evidence of progress.",
    ),
    "selection": (
        "A selection report compares checkpoints on the items of its suite. It is not the number to publish: that is a "
        "release evaluation's.",
    ),
    "release": ("A release report speaks of this checkpoint on these benchmark versions, in this environment.",),
}
_NEVER_CLAIMED = (
    "There is no overall score: benchmarks are not averaged unless a rule registered beforehand says so.",
)

_SECOND_LOOK = (
    "Abilities weigh each item by how well it told runs apart in a calibration on other runs (0: the mean of those, "
    "1: their standard deviation). They are a second look beside the score: no verdict, rule or selection uses them."
)


def title(view: ReportView) -> str:
    """What the report is about, in one line; it begins with the mark of a mock engine, or of doubt, where there is."""
    marks = ([MOCK_MARK] if is_mock(view) else []) + (["SUSPECT"] if view.suspect else [])
    return ": ".join([*marks, _title(view)])


def is_mock(view: ReportView) -> bool:
    """Whether any row that the report speaks of was made up."""
    runs = [run for run in (view.run, view.baseline) if run is not None]
    return any(run.origin == "mock" for run in runs) or any(m.caveat == MOCK_MARK for m in view.measurements)


def _title(view: ReportView) -> str:
    if view.run is not None and view.run.origin == "imported":
        return f"imported responses of {checkpoint_name(view.run)}"
    if view.run is not None:
        return f"{view.run.tier} evaluation of {checkpoint_name(view.run)}"
    if view.comparison is None:
        assert view.item_report is not None
        k = view.item_report.calibration
        return f"items of {k.benchmark} {k.benchmark_version} over {len(k.runs)} checkpoints"
    return f"comparison of {view.comparison.label_a} with {view.comparison.label_b}"


def checkpoint_name(run: Run) -> str:
    """A checkpoint as people call it: training run and step, else the import's name or the head of its id."""
    if run.training_run:
        return f"{run.training_run} step {run.step:,}"
    if isinstance(run.request.engine, ImportedRows):
        return run.request.engine.name
    return f"checkpoint {run.request.checkpoint_id[:12]}"


def verdict(comparison: Comparison) -> str:
    """The verdict in one sentence, with its reason."""
    said, reason = verdict_and_reason(comparison)
    return f"{said} — {reason}." if reason else f"{said}."


def verdict_and_reason(comparison: Comparison) -> tuple[str, str]:
    """The two halves of that sentence, for a page that sets the first in bold; where the verdict is about checkpoints
    of recipes trained apart, the second says what is known of these."""
    of = "the recipe of " if comparison.question == "recipes" else ""
    a, b = f"{of}A ({comparison.label_a})", f"{of}B ({comparison.label_b})"
    said = {
        "A better": f"A better: {a} is better than {b}",
        "B better": f"B better: {b} is better than {a}",
        "INDISTINGUISHABLE": f"INDISTINGUISHABLE: {a} and {b}" + _why_not(comparison.inconclusive),
        None: f"No overall verdict on {a} and {b}",
    }[comparison.verdict]
    reason = comparison.reason.rstrip(".")
    if comparison.question == "checkpoints" and comparison.recipes is not None:
        reason += f"{'. ' if reason else ''}The recipes: {comparison.recipes.answer}"
    return said, reason


def two_questions(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """The two questions with their answers; none where one training run leaves only the first."""
    recipes = comparison.recipes
    if recipes is None:
        return ()
    return (
        ("Do these checkpoints differ?", f"{recipes.checkpoints or 'nothing was tested'}."),
        ("Do the recipes differ?", f"{recipes.answer}."),
    )


def recipe_basis(comparison: Comparison) -> str:
    """What the answer for the recipes rests on; '' where there is none."""
    recipes = comparison.recipes
    if recipes is None or not recipes.answerable:
        return ""
    if recipes.study:
        standing = "EXTRAPOLATED" if _extrapolated(recipes) else "a prior"
        return (
            f"One run of each recipe; how far training seeds lie apart is {standing} from seed study {recipes.study}. "
            "p, interval and the smallest difference found hold it beside the items."
        )
    how = "held against each other by training seed" if recipes.paired_by_seed else "independent of each other"
    return (
        f"{recipes.n_seeds[0]} runs of A's recipe and {recipes.n_seeds[1]} of B's, {how}: how far seeds lie apart is "
        "measured on them."
    )


def _extrapolated(recipes: RecipeAnswer) -> bool:
    return any(term.standing == "EXTRAPOLATED" for test in recipes.tests for term in test.variances)


def recipe_call(test: RecipeTest) -> str:
    """One benchmark's verdict on the recipes in a table cell."""
    if test.not_answerable:
        return f"not answerable: {test.not_answerable}"
    return f"{test.verdict} ({test.inconclusive})" if test.inconclusive else test.verdict


def _why_not(inconclusive: str) -> str:
    return {
        "EQUIVALENT": " are EQUIVALENT within the margin",
        "UNDERPOWERED": " cannot be told apart with these data (UNDERPOWERED)",
    }.get(inconclusive, " cannot be told apart")


def exploratory(comparison: Comparison) -> str:
    """What kind of evidence the comparison is."""
    if comparison.rule is None:
        return "Exploratory: no decision rule was registered, so nothing here decides between the two."
    if comparison.exploratory:
        return (
            f"Exploratory: decision rule {comparison.rule.name} does not bind this comparison, so its outcome is a "
            "suggestion to be confirmed on new data."
        )
    return (
        f"Decided by rule {comparison.rule.name} ({comparison.rule.kind.replace('_', ' ')}), registered "
        f"{comparison.rule.registered_at or 'before the run'}; benchmarks that are not part of it are exploratory."
    )


def shown_tests(comparison: Comparison) -> tuple[PairedTest, ...]:
    """The tests as shown: a composite rule's own test stands before its components and all others."""
    return comparison.tests if comparison.composite is None else (comparison.composite, *comparison.tests)


def scored_by(comparison: Comparison) -> str:
    """Which grader scored both arms, of which benchmarks; '' where the scores came from plain files."""
    benchmarks: dict[str, list[str]] = {}
    for test in comparison.tests:
        if test.grader:
            benchmarks.setdefault(test.grader, []).append(test.benchmark)
    if not benchmarks:
        return ""
    if len(benchmarks) == 1:
        return f"Both arms are scored by {next(iter(benchmarks))}."
    told = "; ".join(f"{', '.join(names)} by {grader}" for grader, names in benchmarks.items())
    return f"Both arms of a benchmark are scored by one grader: {told}."


def flags(comparison: Comparison) -> tuple[str, ...]:
    """What bears on how a difference may be read: instruments or items that differ, and environments. Each once."""
    found: dict[str, list[str]] = {}
    for test in comparison.tests:
        for note in test.notes:
            if note.startswith((f"{test.compatibility}: ", "cross-environment: ")):
                found.setdefault(note, []).append(test.benchmark)
    every = len(comparison.tests)
    return tuple(
        f"{note}." if len(names) == every > 1 else f"{', '.join(names)}: {note}." for note, names in found.items()
    )


def chance(comparison: Comparison) -> str:
    """How many benchmarks would look different by chance alone."""
    tested = sum(test.p is not None for test in comparison.tests)
    moved = sum(test.p is not None and test.p <= comparison.alpha for test in comparison.tests)
    return (
        f"{tested} of {len(comparison.tests)} benchmarks tested. If nothing had changed, "
        f"{decimal(comparison.n_expected_by_chance)} of them would be expected at p <= {comparison.alpha:g} by chance "
        f"({decimal(comparison.alpha * tested)} if every test attained its level exactly); {moved} "
        f"{'is' if moved == 1 else 'are'}. q is p adjusted by Benjamini-Hochberg over the tested benchmarks; where "
        "benchmarks are correlated the expected number holds, but its spread is wider."
    )


def call(test: PairedTest) -> str:
    """One benchmark's verdict in a table cell."""
    if test.not_tested:
        return f"not tested: {test.not_tested}"
    return f"{test.verdict} ({test.inconclusive})" if test.inconclusive else test.verdict


def resolvable(measurement: Measurement) -> float | None:
    """Smallest true difference that two independent samples with this standard error find with 80 % power."""
    if measurement.se is None or not math.isfinite(measurement.se) or measurement.se <= 0:
        return None
    return _DETECTABLE_ERRORS * math.sqrt(2) * measurement.se


def statuses(measurement: Measurement) -> str:
    """Item statuses and flags that are not zero, in words, after what must be said of the number."""
    counts = counts_in_words(
        {
            "invalid": measurement.n_invalid,
            "missing": measurement.n_missing,
            "excluded": measurement.n_excluded,
            "prompts cut": measurement.n_prompt_truncated,
            "outputs cut": measurement.n_output_truncated,
        }
    )
    return "; ".join(part for part in (measurement.caveat, counts) if part)


def companion(measurement: Measurement) -> str:
    """The decontaminated companion in a few words, or that the items were never checked."""
    clean = measurement.companion
    if clean is None:
        return measurement.contamination
    flagged = f"{count(clean.n_contaminated)} flagged ({share(clean.n_contaminated, clean.n + clean.n_contaminated)})"
    unit = measurement.unit
    return f"{amount(clean.score, unit)} {interval(clean.ci95, unit)} n {count(clean.n)}, {flagged}"


def score_name(measurement: Measurement) -> str:
    """Metric with its unit where that is not points, which way is better where it is down, and samples where drawn."""
    says_itself = measurement.unit in ("fraction", measurement.metric.replace("_", " "))
    unit = "" if says_itself else unit_name(measurement.unit)
    within = measurement.within_item
    samples = "" if within is None else f"{within.n_samples} sample{'' if within.n_samples == 1 else 's'} per item"
    notes = [part for part in (unit, "" if measurement.higher_is_better else "lower is better", samples) if part]
    return f"{measurement.metric} ({', '.join(notes)})" if notes else measurement.metric


def effect(test: PairedTest) -> str:
    """One test's difference in words, for text alternatives."""
    if test.delta is None:
        return f"{test.benchmark} {test.metric}: not tested"
    ends = "" if test.ci95 is None else f", from {change(test.ci95[0], test.unit)} to {change(test.ci95[1], test.unit)}"
    return f"{test.benchmark} {test.metric}: {change(test.delta, test.unit)} {unit_name(test.unit)}{ends}"


def has_abilities(view: ReportView) -> bool:
    """Whether an ability, or why there is none, stands anywhere in the report."""
    compared = view.comparison is not None and bool(view.comparison.abilities)
    return compared or any(m.ability is not None for m in (*view.measurements, *view.baseline_measurements))


def not_claimed(view: ReportView) -> tuple[str, ...]:
    """What the reader must not take from the report."""
    said = list(_NOT_CLAIMED[view.run.tier]) if view.run is not None else []
    if is_mock(view):
        said.append("A mock engine made up every answer, and no model ran: nothing here measures anything.")
    elif view.run is not None and view.run.origin != "engine":
        said.append(f"The rows of this run are {view.run.origin}: the engine's guarantees do not cover them.")
    if any(m.companion is None for m in view.measurements):
        said.append("Numbers marked 'never checked' may have their items in the training data.")
    if any(m.quarantined for m in view.measurements):
        said.append("Quarantined numbers are shown for diagnosis only: they are not compared and not published.")
    if has_abilities(view):
        said.append(_SECOND_LOOK)
    if view.run is not None and view.run.status not in ("closed", "planned", "running"):
        said.append(f"The run is {view.run.status}: {view.run.reason or 'not every row is there'}.")
    return (*said, *_NEVER_CLAIMED)
