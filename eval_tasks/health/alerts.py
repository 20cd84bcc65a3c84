"""The alarms of a look -> alerts in the catalog: one for what began, none for what goes on, a new one when it is back.

The alerts of one subject are a chain of ids. The next of the chain is raised when the last one was acknowledged and the
look before was sound; a look that is tried again finds its own alert, whatever became of it.
"""

from __future__ import annotations

from eval_tasks.digests import digest_parts, short_id
from eval_tasks.raw_outputs import sample_lines, take_samples
from eval_tasks.records import Alert, HealthFinding, HealthLook
from eval_tasks.report.health_sentences import finding_sentence, finding_title
from eval_tasks.store import Store

KIND = "health_{}"


def raise_alerts(store: Store, look: HealthLook, now: str) -> None:
    """Raise what is to be raised of a look."""
    for finding in look.alarms:
        kind = KIND.format(finding.detection)
        known = {a.alert_id: a for a in store.catalog.alerts(training_run=look.training_run, kind=kind)}
        alert_id = short_id(digest_parts([kind, look.training_run, *finding.key]))
        while alert_id in known:
            alert = known[alert_id]
            goes_on = finding.since_step != look.step
            if alert.run_id == look.run_id or alert.acknowledged_by is None or goes_on:
                break
            alert_id = short_id(digest_parts([alert_id]))
        else:
            store.catalog.raise_alert(_alert(store, look, finding, alert_id, now))


def _alert(store: Store, look: HealthLook, finding: HealthFinding, alert_id: str, now: str) -> Alert:
    run = store.catalog.run(look.run_id)
    benchmarks = [store.catalog.benchmark_by_id(benchmark_id) for benchmark_id in run.request.benchmark_ids]
    benchmark = next(b for b in benchmarks if b.name == finding.benchmark)
    grader = next(
        m.grader
        for m in store.catalog.measurements(look.run_id)
        if m.benchmark_id == benchmark.benchmark_id and m.primary
    )
    lines = [finding_sentence(finding), ""]
    lines += sample_lines(take_samples(store, look.run_id, benchmark, grader))
    return Alert(
        alert_id=alert_id,
        kind=KIND.format(finding.detection),
        title=f"{look.training_run} step {look.step:,}: {finding_title(finding)}",
        body="\n".join(lines),
        run_id=look.run_id,
        training_run=look.training_run,
        created_at=now,
    )
