"""What must be so when the faults are over: each claim that does not hold, by name. Knows no fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from eval_tasks.store import Store
from tests.end_to_end.undisturbed import Outcome


def of_ledger(store: Store, training_run: str, steps: Iterable[int], broken: Iterable[int]) -> list[str]:
    """Every step landed once; what is sound was dispatched and has ended, what is broken never ran.

    A listing that was seen while files were still coming is superseded, and is no landing.
    """
    rows = [row for row in store.catalog.landings(training_run) if row.state != "superseded" or row.dag_runs]
    seen = Counter(row.landing.step for row in rows)
    wrong = [f"step {step}: {seen[step]} landings" for step in sorted({*steps, *broken}) if seen[step] != 1]
    bad = set(broken)
    for row in rows:
        step = row.landing.step
        if step in bad:
            if row.state != "broken" or row.dag_runs:
                wrong.append(f"step {step}: {row.state} with {len(row.dag_runs)} DAG runs, and it is broken")
        elif row.state != "dispatched" or set(row.finished) != set(row.dag_runs):
            wrong.append(f"step {step}: {row.state}, started {row.dag_runs}, finished {row.finished}")
        if len(set(row.dag_runs)) != len(row.dag_runs):
            wrong.append(f"step {step}: a DAG run twice among {row.dag_runs}")
    return wrong


def of_dag_runs(states: Mapping[str, Mapping[str, str]], wanted: Mapping[str, int]) -> list[str]:
    """As many runs of each DAG as there are landings for it, all successful."""
    wrong = [
        f"{dag}: {len(states[dag])} runs, and {n} landings asked for one"
        for dag, n in wanted.items()
        if len(states[dag]) != n
    ]
    return wrong + [
        f"{dag}: {run} is {state}"
        for dag, runs in states.items()
        for run, state in sorted(runs.items())
        if state != "success"
    ]


def of_results(store: Store, training_run: str, expected: Mapping[int, Outcome]) -> list[str]:
    """One closed run for each step, with the rows and the numbers of an undisturbed one, bit for bit."""
    runs = store.catalog.runs(training_run=training_run)
    count = Counter(run.step for run in runs)
    wrong = [f"step {step}: {count[step]} runs" for step in sorted({*expected, *count}) if count[step] != 1]
    for run in runs:
        if run.status != "closed":
            wrong.append(f"step {run.step}: the run is {run.status}")
            continue
        found = Outcome.of(store, run.run_id)
        if found.rows != expected[run.step].rows:
            wrong.append(f"step {run.step}: other rows than an undisturbed run")
        if found.numbers != expected[run.step].numbers:
            wrong.append(f"step {run.step}: other numbers than an undisturbed run")
    return wrong


def of_alerts(store: Store, broken: Iterable[int], messages: Iterable[str]) -> list[str]:
    """One alert per event, each recorded as delivered and told; each broken checkpoint has one.

    That one is told twice cannot be ruled out (a sender killed between sending and recording), so it is no error here.
    """
    alerts = store.catalog.alerts()
    texts = list(messages)
    events = Counter((alert.kind, alert.title, alert.run_id) for alert in alerts)
    wrong = [f"alert {event[:2]} raised {n} times" for event, n in sorted(events.items(), key=str) if n > 1]
    wrong += [
        f"alert {alert.title!r} was never told" for alert in alerts if not any(alert.alert_id in t for t in texts)
    ]
    late = [delivery for delivery in store.catalog.deliveries() if delivery.state != "sent"]
    wrong += [f"alert {delivery.alert_id} still waits for channel {delivery.channel}" for delivery in late]
    n_broken = sum(alert.kind == "checkpoint_broken" for alert in alerts)
    if n_broken != len(list(broken)):
        wrong.append(f"{n_broken} alerts for {len(list(broken))} broken checkpoints")
    return wrong


def told_again(store: Store, messages: Iterable[str]) -> int:
    """How many messages were sent beyond one for each alert."""
    texts = list(messages)
    return sum(max(0, sum(alert.alert_id in text for text in texts) - 1) for alert in store.catalog.alerts())
