"""Two runs of the store -> their comparison, kept in the catalog. Reads scores by column; reads no output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.compare.compatibility import known_compatibility, refuse_mock_against_real
from eval_tasks.compare.graders import GradersOnRecord
from eval_tasks.compare.pairing import BenchmarkArms, shares_items
from eval_tasks.compare.scores import Sides, compare_scores
from eval_tasks.contamination import NEVER_CHECKED, known_statuses, note
from eval_tasks.errors import NotComparableError, UserError, did_you_mean
from eval_tasks.records import BenchmarkVersion, Comparison, DecisionRule, ImportedRows, Run, to_json
from eval_tasks.records.engine import MOCK_MARK
from eval_tasks.scoring import MetricInfo, metric_of, metrics_of

if TYPE_CHECKING:
    from eval_tasks.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class _Around:
    """What is known beside the scores: (benchmark_id, metric) -> why it is shut, corpora, and graders."""

    quarantined: Mapping[tuple[str, str], str]
    corpora: tuple[str, ...]
    graders: GradersOnRecord


_COLUMNS = ["item_id", "value", "weight", "status", "cluster"]


def compare(
    store: Store,
    run_a: str,
    run_b: str,
    rule: DecisionRule | None = None,
    alpha: float = 0.05,
    *,
    grader: str | None = None,
) -> Comparison:
    """Compare candidate run A with baseline run B on every benchmark they share by name, and keep the comparison.

    One that comes out as it was keeps the diagnoses that were made of it.

    `grader`: whose scores are compared, on the benchmarks that it scored in both runs; else the latest common one.

    Raises NotComparableError, naming the digest or the graders, when nothing can be paired or the arms of a benchmark
    were scored by different graders; UserError for a rule that does not fit.
    """
    a, b = store.catalog.run(run_a), store.catalog.run(run_b)
    for run in (a, b):
        run.require_evaluation()
    refuse_mock_against_real(a, b)
    benchmarks_a, benchmarks_b = benchmarks_of(store, a), benchmarks_of(store, b)
    shared = [name for name in benchmarks_a if name in benchmarks_b]
    if not shared:
        raise NotComparableError(
            f"runs {a.run_id} and {b.run_id} share no benchmark: {sorted(benchmarks_a)} against {sorted(benchmarks_b)}"
        )
    if grader is not None:
        shared = _scored_by(store, (a, b), {name: (benchmarks_a[name], benchmarks_b[name]) for name in shared}, grader)
    around = _Around(
        quarantined=_quarantined(store, (a, b)), corpora=_corpora(store, (a, b)), graders=GradersOnRecord(store)
    )
    arms = [_arms(store, (a, b), (benchmarks_a[name], benchmarks_b[name]), rule, around, grader) for name in shared]
    if all(arm.compatibility == "NONE" for arm in arms):
        raise NotComparableError(
            f"runs {a.run_id} and {b.run_id} have no item in common: "
            + "; ".join(f"{arm.benchmark}: {arm.difference}" for arm in arms)
        )
    late = ""
    if rule is not None:
        rule, late = _binding(store, rule, a)
    sides = Sides(
        run_a=a.run_id,
        run_b=b.run_id,
        label_a=_label(a),
        label_b=_label(b),
        exploratory_reason=late or ("a mock engine made up the rows" if a.origin == "mock" else ""),
        sources_of_variance=_sources(a, b),
        notes=(*_environment_notes(a, b), *_origin_notes(a, b)),
    )
    comparison = compare_scores(arms, sides, rule=rule, alpha=alpha)
    before = store.catalog.find_comparison(comparison.comparison_id)
    if before is not None and replace(before, diagnoses_blob="") == comparison:
        return before
    store.catalog.save_comparison(comparison)
    return comparison


def benchmarks_of(store: Store, run: Run) -> dict[str, BenchmarkVersion]:
    """A run's benchmark versions by name."""
    versions = store.catalog.benchmarks_by_id(run.request.benchmark_ids)
    return {version.name: version for version in versions}


def _arms(
    store: Store,
    runs: tuple[Run, Run],
    versions: tuple[BenchmarkVersion, BenchmarkVersion],
    rule: DecisionRule | None,
    around: _Around,
    grader: str | None = None,
) -> BenchmarkArms:
    (a, b), (in_a, in_b) = runs, versions
    metric = _metric(in_a, rule)
    grader = grader or common_grader(store, a, b, in_a, in_b)
    level, difference = known_compatibility(runs, versions)
    rows = [
        store.scores.read(run.run_id, version.benchmark_id, grader=grader, metric=metric, columns=_COLUMNS)
        for run, version in ((a, in_a), (b, in_b))
    ]
    contamination, note = _contamination(store, around.corpora, in_a)
    arms = BenchmarkArms(
        benchmark=in_a.name,
        metric=metric,
        info=_info(in_a, in_b, metric, rows),
        a=rows[0],
        b=rows[1],
        clustered=in_a.cluster_key is not None,
        compatibility=level,
        difference=difference,
        contamination=contamination,
        contamination_note=note,
        grader=grader,
        notes=around.graders.notes(grader, in_a.name),
        not_tested=next((why for v in versions if (why := around.quarantined.get((v.benchmark_id, metric)))), ""),
    )
    if not shares_items(*rows):
        why = difference or "the runs were planned on other items"
        return replace(arms, compatibility="NONE", difference=why, not_tested=f"no item in common: {why}")
    return arms


def _info(a: BenchmarkVersion, b: BenchmarkVersion, metric: str, rows: Sequence[pa.Table]) -> MetricInfo:
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


def _scored_by(
    store: Store, runs: tuple[Run, Run], versions: Mapping[str, tuple[BenchmarkVersion, BenchmarkVersion]], grader: str
) -> list[str]:
    """The benchmarks that `grader` scored in both runs. Raises NotComparableError when there is none."""
    graders = {
        name: [store.scores.graders(run.run_id, v.benchmark_id) for run, v in zip(runs, pair, strict=True)]
        for name, pair in versions.items()
    }
    found = [name for name, (in_a, in_b) in graders.items() if grader in in_a and grader in in_b]
    if not found:
        known = sorted({g for in_a, in_b in graders.values() for g in in_a if g in in_b})
        raise NotComparableError(f"grader {grader!r} scored no benchmark of both runs; {did_you_mean(grader, known)}")
    return found


def common_grader(store: Store, a: Run, b: Run, in_a: BenchmarkVersion, in_b: BenchmarkVersion) -> str:
    """The latest grader of A that also scored B: two arms are always scored by one grader version."""
    graders = [store.scores.standing(run.run_id, version.benchmark_id) for run, version in ((a, in_a), (b, in_b))]
    for run, found in zip((a, b), graders, strict=True):
        if not found:
            raise NotComparableError(f"run {run.run_id} has no scores of {in_a.name!r}; grade it first")
    common = [grader for grader in graders[0] if grader in graders[1]]
    if not common:
        raise NotComparableError(
            f"{in_a.name}: run {a.run_id} was scored by {graders[0][-1]!r} and run {b.run_id} by {graders[1][-1]!r}; "
            "regrade one of them, so that one grader version scores both"
        )
    return str(common[-1])


def _quarantined(store: Store, runs: tuple[Run, Run]) -> dict[tuple[str, str], str]:
    """(benchmark_id, metric) -> why the guard took its number out of use, in either run."""
    return {
        (m.benchmark_id, m.metric): f"quarantined in {arm}: {m.quarantine_reason or 'no reason recorded'}"
        for arm, run in zip("AB", runs, strict=True)
        for m in store.catalog.measurements(run.run_id)
        if m.quarantined
    }


def _corpora(store: Store, runs: tuple[Run, Run]) -> tuple[str, ...]:
    """The corpora of either checkpoint: an item that one of them saw is not clean for the pair."""
    return tuple(sorted({c for run in runs for c in store.catalog.corpora_of(run.request.checkpoint_id)}))


def _contamination(
    store: Store, corpora: tuple[str, ...], benchmark: BenchmarkVersion
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


def _label(run: Run) -> str:
    if run.training_run:
        return f"{run.training_run} step {run.step}"
    return run.request.engine.name if isinstance(run.request.engine, ImportedRows) else run.run_id[:12]


def _sources(a: Run, b: Run) -> dict[str, str]:
    """What moved the numbers, and what of it was measured. Nothing is claimed that no run has shown."""
    sources = {
        "sampling": "measured: the intervals, from the item pairs",
        "engine": "not yet measured by a nightly rerun in this environment",
        "environment": "the same in both runs",
        "training seed": "not in this comparison: it speaks of two checkpoints of one training run, not of recipes",
    }
    if a.training_run != b.training_run or not a.training_run:
        sources["training seed"] = (
            "not in this comparison: it says whether the checkpoints differ; whether the recipes do is not answerable "
            "without a seed study"
        )
    if "imported" in (a.origin, b.origin):
        sources["engine"] = "unknown: imported rows name no engine that can be rerun"
    if "mock" in (a.origin, b.origin):
        sources["engine"] = MOCK_MARK
    if a.env_fingerprint is None or b.env_fingerprint is None:
        sources["environment"] = "unknown: a run has no fingerprint"
    elif a.env_fingerprint != b.env_fingerprint:
        sources["environment"] = (
            f"differs ({a.env_fingerprint} in A, {b.env_fingerprint} in B); its effect is not yet measured and not in "
            "the intervals"
        )
    return sources


def _environment_notes(a: Run, b: Run) -> tuple[str, ...]:
    if a.env_fingerprint and b.env_fingerprint and a.env_fingerprint != b.env_fingerprint:
        return ("cross-environment: the runs ran on different environments, whose effect is not in the interval",)
    return ()


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
