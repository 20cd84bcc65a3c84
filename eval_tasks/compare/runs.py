"""Two runs of the store, or two arms of several -> their comparison, kept in the catalog.

Reads scores by column; reads no output.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.compare.abilities import abilities_of
from eval_tasks.compare.compared import Compared
from eval_tasks.compare.compatibility import compatibility, known_compatibility, refuse_mock_against_real
from eval_tasks.compare.exposure import one_sided
from eval_tasks.compare.graders import GradersOnRecord, common_grader, scored_by
from eval_tasks.compare.items import changed_items
from eval_tasks.compare.measured import known_noise, sources
from eval_tasks.compare.pairing import BenchmarkArms, shares_items
from eval_tasks.compare.scores import Sides, compare_scores
from eval_tasks.compare.seed_arms import SeedArms, check_arms, mean_notes, seeds_of_arms
from eval_tasks.compare.several_runs import mean_rows
from eval_tasks.contamination import NEVER_CHECKED, known_statuses, note
from eval_tasks.errors import NotComparableError, UserError, did_you_mean
from eval_tasks.records import BenchmarkVersion, Comparison, DecisionRule, ImportedRows, Run, to_json
from eval_tasks.records.engine import MOCK_MARK
from eval_tasks.scoring import MetricInfo, metric_of, metrics_of

if TYPE_CHECKING:
    from eval_tasks.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class _Around:
    """What is known beside the scores: (benchmark_id, metric) -> why it is shut, corpora of A and of B, and graders."""

    quarantined: Mapping[tuple[str, str], str]
    corpora: tuple[tuple[str, ...], tuple[str, ...]]
    graders: GradersOnRecord


_COLUMNS = ["item_id", "value", "weight", "status", "cluster"]


def compare(
    store: Store,
    run_a: str | Sequence[str],
    run_b: str | Sequence[str],
    rule: DecisionRule | None = None,
    alpha: float = 0.05,
    *,
    grader: str | None = None,
    seeds: tuple[Sequence[str], Sequence[str]] = ((), ()),
    seed_study: str | None = None,
) -> Comparison:
    """Compare candidate run A with baseline run B on every benchmark they share by name, and keep the comparison.

    One that comes out as it was keeps the diagnoses that were made of it.

    Several runs an arm (three or more) are runs of one recipe with their own training seeds: the recipes are compared.
    `seeds`: the seed of each run of A and of B; where both arms have the same, runs of one seed are held against each
    other.
    `grader`: whose scores are compared, as `scored_by` takes it, on the benchmarks that it scored in all runs; else the
    latest common one of each.
    `seed_study`: NAME or NAME@VERSION of the study that answers for recipes trained apart; else the one that serves
    best of those in the catalog.

    Raises NotComparableError, naming the digest or the graders, when nothing can be paired, the arms of a benchmark
    were scored by different graders, or the runs of an arm used different instruments; UserError for a rule, study or
    arms that do not fit.
    """
    names = [[run] if isinstance(run, str) else list(run) for run in (run_a, run_b)]
    a, b = (tuple(store.catalog.run(name) for name in arm) for arm in names)
    arms = SeedArms(a=a, b=b, seeds=(tuple(seeds[0]), tuple(seeds[1])))
    for run in (*a, *b):
        run.require_evaluation()
    if arms.several:
        check_arms(arms)
    elif any(arms.seeds):
        raise UserError("training seeds are named, and each arm has one run; several runs an arm are paired by them")
    for run in (*a, *b):
        refuse_mock_against_real(a[0], run)
    versions = {name: (in_a, in_b) for name, (in_a, in_b) in shared_benchmarks(store, (a, b)).items()}
    graders: Mapping[str, str] = {}
    if grader is not None:
        graders = scored_by(store, arms.a, arms.b, versions, grader)
        versions = {name: versions[name] for name in graders}
    around = _Around(
        quarantined=_quarantined(store, arms),
        corpora=(_corpora(store, a), _corpora(store, b)),
        graders=GradersOnRecord(store),
    )
    tables = {name: _tables(store, arms, pair, rule, graders.get(name)) for name, pair in versions.items()}
    listed = [_arms(store, arms, versions[name], tables[name], around) for name in versions]
    if all(arm.compatibility == "NONE" for arm in listed):
        raise NotComparableError(
            f"runs {a[0].run_id} and {b[0].run_id} have no item in common: "
            + "; ".join(f"{arm.benchmark}: {arm.difference}" for arm in listed)
        )
    late = ""
    if rule is not None:
        rule, late = _binding(store, rule, min(a, key=lambda run: _moment(run.created_at)))
    compared = Compared(a=a, b=b, arms=listed, versions=versions)
    own = None
    if arms.several:
        rows = {name: found.rows for name, found in tables.items()}
        own = seeds_of_arms(arms.order_of_b, rows, {arm.benchmark: arm for arm in listed})
    noise = known_noise(store, compared, own=own, asked=seed_study)
    sides = Sides(
        run_a=a[0].run_id,
        run_b=b[0].run_id,
        label_a=_label(a),
        label_b=_label(b),
        exploratory_reason=late or ("a mock engine made up the rows" if a[0].origin == "mock" else ""),
        sources_of_variance=sources(compared, noise),
        notes=(*mean_notes(len(a), len(b)), *_origin_notes(a[0], b[0])),
        noise=noise,
        further_a=tuple(run.run_id for run in a[1:]),
        further_b=tuple(run.run_id for run in b[1:]),
        seeds_a=arms.seeds[0],
        seeds_b=arms.seeds[1],
    )
    comparison = compare_scores(listed, sides, rule=rule, alpha=alpha)
    if not arms.several:
        comparison = replace(comparison, abilities=abilities_of(store, compared))
    before = store.catalog.find_comparison(comparison.comparison_id)
    if before is not None and replace(before, diagnoses_blob="") == comparison:
        return before
    store.catalog.save_comparison(comparison)
    return comparison


def shared_benchmarks(store: Store, arms: Sequence[Sequence[Run]]) -> dict[str, list[BenchmarkVersion]]:
    """The benchmarks that all runs have by name, each as the version of every arm.

    Raises NotComparableError when there is none, and for runs of one arm that used different versions.
    """
    found = [[benchmarks_of(store, run) for run in arm] for arm in arms]
    everywhere = [known for arm in found for known in arm]
    shared = [name for name in everywhere[0] if all(name in known for known in everywhere)]
    if not shared:
        names = " and ".join(run.run_id for arm in arms for run in arm)
        against = " against ".join(str(sorted(known)) for known in everywhere)
        raise NotComparableError(f"runs {names} share no benchmark: {against}")
    for runs, of_arm in zip(arms, found, strict=True):
        for run, known in zip(runs, of_arm, strict=True):
            for name in shared:
                difference = compatibility(of_arm[0][name], known[name])[1]
                if difference:
                    raise NotComparableError(
                        f"{name}: run {run.run_id[:12]} used another instrument than run {runs[0].run_id[:12]} of the "
                        f"same recipe: {difference}; runs of one recipe use one"
                    )
    return {name: [of_arm[0][name] for of_arm in found] for name in shared}


def benchmarks_of(store: Store, run: Run) -> dict[str, BenchmarkVersion]:
    """A run's benchmark versions by name."""
    versions = store.catalog.benchmarks_by_id(run.request.benchmark_ids)
    return {version.name: version for version in versions}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tables:
    """One benchmark's scores: metric, grader, and a table of rows for each run of A and of B."""

    metric: str
    grader: str
    rows: tuple[list[pa.Table], list[pa.Table]]


def is_stratified(benchmark: BenchmarkVersion) -> bool:
    """Whether errors are those within strata: where items are clustered the clusters decide."""
    return benchmark.stratum_key is not None and benchmark.cluster_key is None


def _tables(
    store: Store,
    arms: SeedArms,
    versions: tuple[BenchmarkVersion, BenchmarkVersion],
    rule: DecisionRule | None,
    grader: str | None,
) -> _Tables:
    metric = _metric(versions[0], rule)
    columns = [*_COLUMNS, "stratum"] if is_stratified(versions[0]) else _COLUMNS
    runs = [(run, version) for arm, version in zip((arms.a, arms.b), versions, strict=True) for run in arm]
    grader = grader or common_grader(store, runs)
    rows = [
        store.scores.read(run.run_id, version.benchmark_id, grader=grader, metric=metric, columns=columns)
        for run, version in runs
    ]
    return _Tables(metric=metric, grader=grader, rows=(rows[: len(arms.a)], rows[len(arms.a) :]))


def _arms(
    store: Store,
    arms: SeedArms,
    versions: tuple[BenchmarkVersion, BenchmarkVersion],
    tables: _Tables,
    around: _Around,
) -> BenchmarkArms:
    in_a, in_b = versions
    metric, grader = tables.metric, tables.grader
    level, difference = known_compatibility((arms.a[0], arms.b[0]), versions)
    rows = [mean_rows(in_a.name, f"arm {arm}", side) for arm, side in zip("AB", tables.rows, strict=True)]
    contamination, note = _contamination(store, {*around.corpora[0], *around.corpora[1]}, in_a)
    changed = changed_items(store, in_a, in_b)
    found = BenchmarkArms(
        benchmark=in_a.name,
        metric=metric,
        info=shared_traits(in_a, in_b, metric, rows),
        a=rows[0],
        b=rows[1],
        clustered=in_a.cluster_key is not None,
        stratified=is_stratified(in_a),
        compatibility=level,
        difference=difference,
        contamination=contamination,
        contamination_note=note,
        grader=grader,
        notes=(*around.graders.notes(grader, in_a.name), *_told(changed)),
        changed=changed,
        exposure=one_sided(store, in_a.benchmark_id, *around.corpora) if in_a == in_b else None,
        not_tested=next((why for v in versions if (why := around.quarantined.get((v.benchmark_id, metric)))), ""),
    )
    if not shares_items(rows[0], rows[1], changed):
        why = difference or "the runs were planned on other items"
        return replace(found, compatibility="NONE", difference=why, not_tested=f"no item in common: {why}")
    return found


def _told(changed: frozenset[str]) -> tuple[str, ...]:
    if not changed:
        return ()
    shown = ", ".join(sorted(changed)[:3]) + (" ..." if len(changed) > 3 else "")
    return (f"{len(changed)} items have another question or answer under the same id, and make no pairs: {shown}",)


def shared_traits(a: BenchmarkVersion, b: BenchmarkVersion, metric: str, rows: Sequence[pa.Table]) -> MetricInfo:
    """What the metric means to both: a mean over samples is not right or wrong, whatever the other arm's items are.

    Nor are the values of a judge that knows more than right and wrong.
    """
    info = metric_of(a, metric)
    binary = info.binary and metric_of(b, metric).binary
    return replace(info, binary=binary and all(_is_right_or_wrong(table["value"]) for table in rows))


def _is_right_or_wrong(values: pa.ChunkedArray) -> bool:
    return {*pc.unique(values).to_pylist()} <= {0.0, 1.0, None}


def _metric(benchmark: BenchmarkVersion, rule: DecisionRule | None) -> str:
    """The rule's metric for the benchmarks it names (``primary``: each one's own), the primary metric for the rest."""
    if rule is None or benchmark.name not in rule.benchmarks or rule.metric == "primary":
        return benchmark.primary_metric
    known = metrics_of(benchmark.scorer.name, benchmark.sampling)
    if rule.metric not in known:
        raise UserError(
            f"rule {rule.name!r}: benchmark {benchmark.name!r} has no metric {rule.metric!r}; "
            f"{did_you_mean(rule.metric, known)}; 'primary' takes each benchmark's own"
        )
    return rule.metric


def _quarantined(store: Store, arms: SeedArms) -> dict[tuple[str, str], str]:
    """(benchmark_id, metric) -> why the guard took its number out of use, in any run."""
    return {
        (m.benchmark_id, m.metric): f"quarantined in {arm}: {m.quarantine_reason or 'no reason recorded'}"
        for arm, runs in (("A", arms.a), ("B", arms.b))
        for run in runs
        for m in store.catalog.measurements(run.run_id)
        if m.quarantined
    }


def _corpora(store: Store, runs: Sequence[Run]) -> tuple[str, ...]:
    """The corpora of an arm's checkpoints. An item that either arm saw is not clean for the pair."""
    return tuple(sorted({c for run in runs for c in store.catalog.corpora_of(run.request.checkpoint_id)}))


def _contamination(
    store: Store, corpora: Collection[str], benchmark: BenchmarkVersion
) -> tuple[Mapping[str, str] | None, str]:
    """Statuses of a benchmark's items against those corpora, and in words what was checked."""
    statuses, checks = known_statuses(store, benchmark.benchmark_id, corpora)
    if statuses is None:
        return None, NEVER_CHECKED
    n_found = sum(status == "contaminated" for status in statuses.values())
    return statuses, note(checks, n_found / len(statuses) if statuses else 0.0)


def _binding(store: Store, rule: DecisionRule, a: Run) -> tuple[DecisionRule, str]:
    """The rule as registered, and why it is no decision made before run A: the catalog's copy and time count."""
    registered = next((known for known in store.catalog.rules() if known.name == rule.name), None)
    if registered is None:
        return replace(rule, registered_at=""), f"rule {rule.name!r} was never registered"
    if registered.rule_id != rule.rule_id:
        new, old = to_json(rule), to_json(registered)
        changed = ", ".join(name for name in new if name != "registered_at" and new[name] != old[name])
        return replace(rule, registered_at=""), f"rule {rule.name!r} was changed since it was registered ({changed})"
    if _moment(registered.registered_at) > _moment(a.created_at):
        late = f"rule {rule.name!r} was registered at {registered.registered_at}, after run A began at {a.created_at}"
        return registered, late
    return registered, ""


def _moment(text: str) -> datetime:
    """A time of the catalog; one without a zone is UTC, as all of them are."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _label(runs: Sequence[Run]) -> str:
    further = len(runs) - 1
    return label_of(runs[0]) + (f" and {further} other seeds" if further else "")


def label_of(run: Run) -> str:
    """What people call a run: its checkpoint, else its name, else the beginning of its id."""
    if run.training_run:
        return f"{run.training_run} step {run.step}"
    return run.request.engine.name if isinstance(run.request.engine, ImportedRows) else run.run_id[:12]


def _origin_notes(a: Run, b: Run) -> tuple[str, ...]:
    """What a reader must know where rows are not an engine's."""
    origins = (a.origin, b.origin)
    if "mock" in origins:
        return (MOCK_MARK,)
    if "imported" not in origins:
        return ()
    if origins == ("imported", "imported"):
        return ("imported: the rows of both runs were read from files; no engine's guarantees cover them",)
    arm, other = ("A", "B") if a.origin == "imported" else ("B", "A")
    return (
        f"imported against {b.origin if arm == 'A' else a.origin}: the rows of {arm} were read from files and those of "
        f"{other} were not, so the difference holds whatever differs between the two ways of asking",
    )
