"""The health step: takes one look at a closed run, keeps what it found, raises one alert for each alarm that began.

A look is taken once for a set of scores: asking again gives what it found, so that a retry is no second chance to be
wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eval_tasks.digests import digest_parts, short_id
from eval_tasks.errors import DataError, UserError
from eval_tasks.health import detections
from eval_tasks.health.alerts import raise_alerts
from eval_tasks.health.arms import LookScores, domains_of, pair, read_look
from eval_tasks.health.detections import Earlier, blank
from eval_tasks.health.series import earlier_looks, held_against
from eval_tasks.measured_noise import noise_of, noise_record
from eval_tasks.records import NO_TRAINING_RUN, BenchmarkVersion, HealthFinding, HealthLook, Measurement, Run
from eval_tasks.scoring import metric_of
from eval_tasks.stats.checkpoint_noise import CheckpointNoise
from eval_tasks.stats.health import LEAD_LOST, LOSS_RISE, MODAL_SHARE
from eval_tasks.stats.looks import HORIZON, spent_at
from eval_tasks.store import SeriesPoint, Store

ALPHA_PER_RUN = 0.01
"""Of a hundred sound training runs of any length, at most one raises a false alarm of each detection."""

NOT_DETECTED = (
    f"a loss that rose by {LOSS_RISE:.0%} or less, and progress of any size (the loss curve shows it)",
    f"a fall of accuracy that leaves {1 - LEAD_LOST:.0%} of its lead over chance: it is watched for breakage",
    f"outputs of which up to {MODAL_SHARE:.0%} are alike, short of what guard refuses in a single run",
    "a domain that no held-out document stands for, and damage that neither loss nor choices show, such as refusals",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """One benchmark of the look, read once: its scores now, and at the looks it is held against."""

    benchmark: BenchmarkVersion
    series: Sequence[SeriesPoint]
    now: LookScores
    earlier: tuple[Earlier, ...]
    noise: CheckpointNoise | None


def health(store: Store, *, run_id: str, now: str) -> HealthLook:
    """Look at a run beside the earlier checkpoints of its training run. `now` is an alert's time, UTC, ISO 8601.

    Raises UserError for a run without a training run, DataError for one that is not closed or not measured.
    """
    run = store.catalog.run(run_id)
    if not run.training_run:
        raise UserError(f"run {run.run_id} belongs to no training run: there is nothing earlier to hold it against")
    if run.status != "closed":
        raise DataError(f"run {run.run_id} is {run.status}, not closed: its health is not looked at")
    primary = {m.benchmark_id: m for m in store.catalog.measurements(run.run_id) if m.primary}
    benchmarks = [store.catalog.benchmark_by_id(benchmark_id) for benchmark_id in run.request.benchmark_ids]
    for benchmark in benchmarks:
        if benchmark.benchmark_id not in primary:
            raise DataError(f"run {run.run_id} has no measurement of {benchmark.name!r}; aggregate it first")
    scored_by = short_id(digest_parts([f"{key} {primary[key].grader}" for key in sorted(primary)]))
    look = store.catalog.health(run.run_id)
    if look is None or look.scored_by != scored_by:
        look = replace(_look(store, run, benchmarks, primary), scored_by=scored_by)
        store.catalog.save_health(look)
    raise_alerts(store, look, now)
    return look


def _look(
    store: Store, run: Run, benchmarks: Sequence[BenchmarkVersion], primary: dict[str, Measurement]
) -> HealthLook:
    findings: list[HealthFinding] = []
    subjects: list[_Subject] = []
    notes: list[str] = []
    for benchmark in benchmarks:
        m = primary[benchmark.benchmark_id]
        watched = ("divergence",) if benchmark.kind == "loss" else ("chance_level", "collapse")
        if m.quarantined or m.score is None:
            why = f"quarantined by guard: {m.quarantine_reason}" if m.quarantined else "no item has a score"
            findings += [blank(detection, benchmark, why=why) for detection in watched]  # type: ignore[arg-type]
            continue
        subjects.append(_subject(store, run, benchmark, m.grader, notes))
    n_looks = 1 + max((len(s.series) for s in subjects), default=0)
    alpha = spent_at(n_looks, ALPHA_PER_RUN)
    losses = [s for s in subjects if s.benchmark.kind == "loss"]
    answers = [s for s in subjects if s.benchmark.kind != "loss"]
    for s in losses:
        findings.append(detections.divergence(s.benchmark, s.earlier, s.noise, alpha / len(losses)))
    findings += _forgetting(store, losses, alpha)
    for s in answers:
        each = alpha / len(answers)
        if metric_of(s.benchmark, s.benchmark.primary_metric).binary:
            findings.append(detections.chance_level(s.benchmark, s.earlier, s.noise, each))
        else:
            why = "its primary metric is not right or wrong"
            findings.append(blank("chance_level", s.benchmark, why=why))
        findings.append(detections.collapse(s.benchmark, s.now, s.earlier, each))
    if run.training_run == NO_TRAINING_RUN:
        notes.append(f"{NO_TRAINING_RUN!r} is no training run: nothing is held against what else has that name")
    before = store.catalog.health_before(run.training_run, run.step)
    return HealthLook(
        run_id=run.run_id,
        training_run=run.training_run,
        step=run.step,
        look=n_looks,
        alpha_per_run=ALPHA_PER_RUN,
        horizon=HORIZON,
        findings=tuple(_with_onset(finding, before, run.step) for finding in findings),
        noise=tuple(noise_record(store, s.benchmark, s.series, s.noise) for s in subjects),
        not_detected=NOT_DETECTED,
        notes=(*dict.fromkeys(notes), *_environments(store, run, subjects)),
    )


def _subject(store: Store, run: Run, benchmark: BenchmarkVersion, grader: str, notes: list[str]) -> _Subject:
    series = earlier_looks(store, run, benchmark)
    now = read_look(store, run.run_id, benchmark, grader)
    categories = domains_of(store, benchmark) if benchmark.kind == "loss" else None
    earlier = []
    for point in held_against(series):
        if grader not in store.scores.graders(point.run_id, benchmark.benchmark_id):
            notes.append(
                f"{benchmark.name}: step {point.step:,} was scored by another scorer version and is not held against "
                "this one; regrade it"
            )
            continue
        scores = read_look(store, point.run_id, benchmark, grader)
        earlier.append(Earlier(step=point.step, pair=pair(now, scores, categories), scores=scores))
    return _Subject(
        benchmark=benchmark,
        series=series,
        now=now,
        earlier=tuple(earlier),
        noise=noise_of(series, _moving_items(earlier)),
    )


def _moving_items(earlier: Sequence[Earlier]) -> float:
    """The variance that items moving by themselves give one score: half of the squared error of neighbours."""
    estimate = earlier[0].pair.estimate() if earlier else None
    return 0.0 if estimate is None or estimate.se is None else estimate.se**2 / 2


def _forgetting(store: Store, losses: Sequence[_Subject], alpha: float) -> list[HealthFinding]:
    """Domains of all loss benchmarks of one metric side by side, at the looks that all of them have."""
    findings = []
    metrics = list(dict.fromkeys(s.benchmark.primary_metric for s in losses))
    for metric in metrics:
        group = [s for s in losses if s.benchmark.primary_metric == metric]
        domains = [(s.benchmark, name) for s in group for name in _domain_names(store, s)]
        if len(domains) < 2:
            continue
        steps = set.intersection(*({e.step for e in s.earlier} for s in group))
        earlier = {
            step: {s.benchmark.name: e.pair for s in group for e in s.earlier if e.step == step}
            for step in sorted(steps, reverse=True)
        }
        findings += detections.forgetting(domains, earlier, alpha / len(metrics))
    return findings


def _domain_names(store: Store, subject: _Subject) -> list[str]:
    """The names of a benchmark's domains in its present items, sorted; items without one are "" like a whole."""
    if subject.earlier:
        return sorted(set(np.unique(subject.earlier[0].pair.domains.astype(str)).tolist()))
    categories = domains_of(store, subject.benchmark)
    names = subject.now.strata if categories is None else tuple(categories.values())
    return sorted({name or "" for name in names})


def _with_onset(finding: HealthFinding, before: HealthLook | None, step: int) -> HealthFinding:
    """An alarm that the look before had too began where that one says."""
    if not finding.alarm:
        return finding
    earlier = next((f for f in before.alarms if f.key == finding.key), None) if before else None
    return replace(finding, since_step=earlier.since_step if earlier else step)


def _environments(store: Store, run: Run, subjects: Sequence[_Subject]) -> tuple[str, ...]:
    held = {p.run_id: p.step for s in subjects for p in held_against(s.series)}
    others = [step for run_id, step in held.items() if store.catalog.run(run_id).env_fingerprint != run.env_fingerprint]
    if not others:
        return ()
    steps = ", ".join(f"{step:,}" for step in sorted(others))
    return (f"steps {steps} ran in another environment, whose effect is in the differences to them",)
