"""The two runs of a night, computed -> what they show: bit for bit, against each other and against the baseline.

    planned = plan_night(store, config=..., environment="h100", night="2026-01-31", cache_dir=..., now=...)
    ... run_shard for the shards of both plans, and try_sentinels, in that environment's pods ...
    found = judge_night(store, planned, policy=..., now=...)

The same night judged again is the same night: nothing is decided or told twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from eval_tasks.bitwise import compare_rows
from eval_tasks.determinism import baselines
from eval_tasks.determinism.computed_again import check_again
from eval_tasks.determinism.effect import beyond, rerun, shown
from eval_tasks.determinism.explaining import mark_suspects
from eval_tasks.determinism.findings import Findings
from eval_tasks.determinism.planning import PlannedNight
from eval_tasks.digests import digest_parts, short_id
from eval_tasks.errors import InfraError
from eval_tasks.grade import grade
from eval_tasks.records import Alert, BenchmarkVersion, Night, RowsComparison, Run
from eval_tasks.settings import DeterminismPolicy

if TYPE_CHECKING:
    from eval_tasks.store import Store


def judge_night(store: Store, planned: PlannedNight, *, policy: DeterminismPolicy, now: str) -> Night:
    """Close and score both runs, compare, decide on baselines, open blocks, and record what was found.

    A night that was judged is what it was found to be, whatever was explained or adopted since. Raises InfraError when
    rows are missing, or when the sentinels' pod has not reported.
    """
    for known in store.catalog.nights(environment=planned.environment):
        if (known.night, known.run_id) == (planned.night, planned.run_id):
            return known
    twice = []
    for run_id in (planned.run_id, planned.perturbed_run_id):
        grade(store, run_id=run_id)
        twice.append(check_again(store, run_id, now))
    run, perturbed = (store.catalog.run(run_id) for run_id in (planned.run_id, planned.perturbed_run_id))
    benchmarks = [store.catalog.benchmark_by_id(benchmark_id) for benchmark_id in run.request.benchmark_ids]
    findings = Findings(store=store, run=run, now=now)
    for found in twice:
        findings.computed_twice(found)
    variance = _engine_variance(store, findings, run, perturbed, benchmarks, now)
    sentinels = _sentinels(store, findings, run)
    night = Night(
        night=planned.night,
        environment=planned.environment,
        env_fingerprint=run.env_fingerprint or "",
        suite_id=run.request.suite_id,
        checkpoint_id=run.request.checkpoint_id,
        status="failed",
        run_id=run.run_id,
        perturbed_run_id=perturbed.run_id,
        recorded_at=now,
        good_at=run.closed_at or now,
        n_items=_n_items(store, run),
        device_seconds=_device_seconds(store, run, perturbed),
        perturbed=variance,
        sentinels=sentinels,
    )
    night = _against_baseline(store, findings, night, run, benchmarks, policy, now)
    night = replace(night, block_ids=tuple(findings.block_ids), findings=tuple(findings.sentences))
    store.catalog.save_night(night)
    _tell(store, night, findings, now)
    return night


def _engine_variance(
    store: Store, findings: Findings, run: Run, perturbed: Run, benchmarks: Sequence[BenchmarkVersion], now: str
) -> RowsComparison | None:
    """Rows under another batch plan against this night's: the engine's variance, which is zero or a failure."""
    again = rerun(store, run, perturbed, benchmarks, source=f"night {run.environment}, perturbed plan", now=now)
    if run.env_fingerprint != perturbed.env_fingerprint:
        findings.remark(
            f"the perturbed plan ran on fingerprint {str(perturbed.env_fingerprint)[:12]}: two kinds of machines "
            f"answer to environment {run.environment!r}, and the engine's variance was not measured"
        )
        return None
    compared = compare_rows(store, run.run_id, perturbed.run_id, benchmarks)
    if compared.n_differing:
        moved = ", ".join(shown(d) for d in again.differences if d.delta)
        findings.block(
            "engine_variance",
            f"{compared.n_differing} of {compared.n_items} items differ between two batch plans of one request"
            + (f" ({moved})" if moved else ""),
            compared,
        )
    store.catalog.save_rerun(replace(again, measured_at=run.created_at))
    return compared


def _sentinels(store: Store, findings: Findings, run: Run) -> tuple[int, int] | None:
    """(broken, all) promises, None where the engine is a mock."""
    if run.request.engine_config.is_mock:
        return None
    report = store.catalog.sentinels(run.run_id)
    if report is None:
        raise InfraError(f"the sentinels beside run {run.run_id} have not reported; clear their task to run them")
    if report.env_fingerprint != run.env_fingerprint:
        findings.remark(f"the sentinels ran on fingerprint {report.env_fingerprint[:12]}, another than the rows")
    if report.broken:
        names = ", ".join(f"{check.name} ({len(check.differing)} items)" for check in report.broken)
        findings.block("sentinels", f"the engine's contract does not hold: {names}", nodes=(report.node,))
    return len(report.broken), len(report.checks)


def _against_baseline(
    store: Store,
    findings: Findings,
    night: Night,
    run: Run,
    benchmarks: Sequence[BenchmarkVersion],
    policy: DeterminismPolicy,
    now: str,
) -> Night:
    """Compare with the fingerprint's own baseline, or decide whether this night is to be its first one."""
    own = baselines.standing(store, run)
    if own is not None and own.run_id != run.run_id:
        compared = compare_rows(store, own.run_id, run.run_id, benchmarks)
        if compared.n_differing:
            findings.block("rows_changed", _changed(own.harness_version, run, compared), compared)
        night = replace(night, baseline_run_id=own.run_id, against_baseline=compared)
        return replace(night, status="failed" if findings.block_ids else "good")
    if own is not None:  # it was adopted, and died before it could say so
        return replace(night, status="failed" if findings.block_ids else "adopted")
    if findings.block_ids:
        return night
    return _candidate(store, findings, night, run, benchmarks, policy, now)


def _changed(harness_before: str, run: Run, compared: RowsComparison) -> str:
    reason = f"{compared.n_differing} of {compared.n_items} items have other rows than the adopted baseline"
    if harness_before == run.request.harness_version:
        return f"{reason}, with the same release of checkpoint-eval"
    return f"{reason}; checkpoint-eval was {harness_before} then and is {run.request.harness_version} now"


def _candidate(
    store: Store,
    findings: Findings,
    night: Night,
    run: Run,
    benchmarks: Sequence[BenchmarkVersion],
    policy: DeterminismPolicy,
    now: str,
) -> Night:
    """A fingerprint without a baseline on this suite and checkpoint: measured, then adopted, by itself or not."""
    known = store.catalog.baselines(status="adopted")
    before = baselines.last_adopted(store, run)
    stored = store.catalog.baseline(run.env_fingerprint or "", run.request.suite_id)
    if stored is not None and stored.status == "refused":
        findings.remark(f"{stored.decided_by} refused this fingerprint: {stored.effect}")
        return replace(night, status="candidate")
    if not known:
        baselines.proposal(store, run, "adopted", by=baselines.BY_ITSELF, effect="the first of all", now=now)
        findings.remark("the first baseline of this installation: adopted by itself")
        return replace(night, status="adopted")
    if before is None:
        return _without_reference(store, findings, night, run, now)
    compared = compare_rows(store, before.run_id, run.run_id, benchmarks)
    effect = rerun(store, store.catalog.run(before.run_id), run, benchmarks, source=f"night {run.environment}", now=now)
    store.catalog.save_rerun(replace(effect, measured_at=run.created_at))
    too_far = [d for d in effect.differences if beyond(d, policy)]
    words = (
        f"against {before.env_fingerprint[:12]}: {compared.n_differing} of {compared.n_items} items have other rows, "
        + (", ".join(shown(d) for d in effect.differences if d.delta) or "no score moved")
    )
    night = replace(night, baseline_run_id=before.run_id, against_baseline=compared, effect=tuple(effect.differences))
    if not too_far:
        baselines.proposal(store, run, "adopted", by=baselines.BY_ITSELF, effect=f"within the bound {words}", now=now)
        findings.remark(f"a new fingerprint, adopted by itself within the declared bound {words}")
        return replace(night, status="adopted")
    baselines.proposal(store, run, "candidate", effect=words, now=now)
    findings.block("new_environment", f"a new fingerprint moves scores beyond the declared bound {words}", compared)
    return replace(night, status="candidate")


def _without_reference(store: Store, findings: Findings, night: Night, run: Run, now: str) -> Night:
    """Baselines are there, of another suite version or checkpoint: nothing shows that only these have changed."""
    suites = sorted({b.suite_id[:12] for b in store.catalog.baselines(status="adopted")})
    words = (
        f"no adopted baseline is of suite {run.request.suite}@{run.request.suite_version} and this checkpoint (they "
        f"are of suites {', '.join(suites)}), so the change cannot be measured"
    )
    baselines.proposal(store, run, "candidate", effect=words, now=now)
    known_good = any(b.env_fingerprint == run.env_fingerprint for b in store.catalog.baselines(status="adopted"))
    if known_good:
        findings.remark(f"{words}; adopt this night's rows: python -m eval_tasks baselines adopt {run.environment}")
    else:
        findings.block("new_environment", f"a new fingerprint, and {words}")
    return replace(night, status="candidate")


def _n_items(store: Store, run: Run) -> int:
    return sum(int(entry["n_rows"]) for entry in store.responses.manifest(run.run_id)["files"])


def _device_seconds(store: Store, *runs: Run) -> float:
    """What the night cost: its shards and its sentinels."""
    seconds = sum(row.seconds for run in runs for row in store.catalog.shards(run.run_id))
    report = store.catalog.sentinels(runs[0].run_id)
    return seconds + (sum(check.seconds for check in report.checks) if report else 0.0)


def _tell(store: Store, night: Night, findings: Findings, now: str) -> None:
    """One alert for each block, and one for a candidate that only waits; the reports of suspect runs say so."""
    for block_id in findings.block_ids:
        mark_suspects(store, store.catalog.block(block_id), now)
    if night.status == "candidate" and not findings.block_ids:
        store.catalog.raise_alert(
            Alert(
                alert_id=short_id(digest_parts(["baseline_candidate", night.env_fingerprint, night.suite_id])),
                kind="baseline_candidate",
                title=f"environment {night.environment}: a baseline waits to be adopted",
                body="\n".join(night.findings),
                run_id=night.run_id,
                created_at=now,
            )
        )
