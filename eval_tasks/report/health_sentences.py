"""A look at a training run's health in, the sentences that every rendering says alike out."""

from __future__ import annotations

from eval_tasks.records import HealthFinding, HealthLook
from eval_tasks.report.numbers import amount, change, count, probability, unit_name

NAMES = {
    "divergence": "divergence",
    "forgetting": "domain forgetting",
    "chance_level": "accuracy at chance",
    "collapse": "collapsed outputs",
}

_STRUCK = {
    "divergence": "the held-out loss lies {observed} above step {against}; up to {threshold} is let pass",
    "forgetting": "its loss lies {observed} above step {against}, beside the other domains too; up to {threshold} is "
    "let pass",
    "chance_level": "more than half of its lead over chance at step {against} is gone ({observed} points more), and "
    "its interval does not lie above chance",
    "collapse": "{observed} % of all answers are one and the same; at step {against} at most {threshold} % were",
}


def finding_title(finding: HealthFinding) -> str:
    """What struck, in a few words."""
    where = f"{finding.benchmark}, {finding.subject}" if finding.subject else finding.benchmark
    return f"{NAMES[finding.detection]} in {where}"


def finding_sentence(finding: HealthFinding) -> str:
    """One finding in words: the numbers, p, and what it was held against."""
    if finding.not_tested:
        return f"{finding_title(finding)}: not tested: {finding.not_tested}."
    found = "ALARM" if finding.alarm else "no alarm"
    if finding.alarm and finding.against_step is not None:
        unit = "" if finding.unit == "fraction" else f" {unit_name(finding.unit)}"
        says = _STRUCK[finding.detection].format(
            observed=amount(finding.observed, finding.unit) + unit,
            threshold=amount(finding.threshold, finding.unit) + unit,
            against=count(finding.against_step),
        )
        since = f", since step {count(finding.since_step)}" if finding.since_step is not None else ""
        return f"{finding_title(finding)}: {says} (p = {probability(finding.p)} of {_small(finding.alpha)}{since})."
    return (
        f"{finding_title(finding)}: {found}: {change(finding.observed, finding.unit)} against step "
        f"{count(finding.against_step)} (p = {probability(finding.p)})."
    )


def _small(alpha: float | None) -> str:
    return "–" if alpha is None else f"{alpha:.1e} that this test may spend"


def health_verdict(look: HealthLook) -> str:
    """Alive or not, in one sentence."""
    alarms = look.alarms
    if alarms:
        return f"Health: {len(alarms)} alarm{'s' if len(alarms) > 1 else ''}: " + "; ".join(map(finding_title, alarms))
    tested = sum(not finding.not_tested for finding in look.findings)
    if not tested:
        return "Health: nothing could be tested at this look."
    return f"Health: no alarm in {tested} test{'' if tested == 1 else 's'}."


def false_alarms(look: HealthLook) -> str:
    """The stated rate of false alarms."""
    return (
        f"Look {count(look.look)} at this training run. Each detection raises a false alarm in at most "
        f"{100 * look.alpha_per_run:g} of 100 training runs of {count(look.horizon)} looks, retries and backfills not "
        "counted twice (alpha spending; it holds whatever the looks have in common)."
    )
