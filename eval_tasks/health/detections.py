"""Aligned scores of a look and of earlier looks -> findings: per subject the earlier look that stood out most.

What a look may spend is shared out evenly over the subjects of a detection and the looks it is held against, so that
the rate of false alarms is that of the training run whatever depends on what.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from eval_tasks.health.arms import LookScores, Pair
from eval_tasks.records import BenchmarkVersion, HealthFinding
from eval_tasks.records.health import Detection
from eval_tasks.scoring import metric_of
from eval_tasks.stats.checkpoint_noise import CheckpointNoise
from eval_tasks.stats.health import MODAL_SHARE, Excess, collapse_p, domain_rise, loss_rise, lost_lead
from eval_tasks.stats.influence import FloatArray

MIN_DOCUMENTS = 20
"""A domain of fewer documents is not tested: nothing holds so far out in the tails of so few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """An earlier look's step, the items it shares with the present one, and its scores."""

    step: int
    pair: Pair
    scores: LookScores


def blank(detection: Detection, benchmark: BenchmarkVersion, subject: str = "", why: str = "") -> HealthFinding:
    """A finding of nothing, or that it was not tested and why."""
    return HealthFinding(
        detection=detection,
        benchmark=benchmark.name,
        metric=benchmark.primary_metric,
        subject=subject,
        unit=metric_of(benchmark, benchmark.primary_metric).unit,
        not_tested=why,
    )


def divergence(
    benchmark: BenchmarkVersion, earlier: Sequence[Earlier], noise: CheckpointNoise | None, alpha: float
) -> HealthFinding:
    """Has the loss of a benchmark risen against an earlier look? `alpha` is what this benchmark may spend here."""
    tests = {}
    for look in earlier:
        estimate = look.pair.estimate()
        tests[look.step] = None if estimate is None else loss_rise(estimate, noise)
    return _worst(blank("divergence", benchmark), tests, alpha)


def forgetting(
    domains: Sequence[tuple[BenchmarkVersion, str]], earlier: Mapping[int, Mapping[str, Pair]], alpha: float
) -> list[HealthFinding]:
    """Has one domain risen while the others have not? `earlier`: step -> benchmark name -> the items it shares.

    A domain is (benchmark, name), with the empty name for a benchmark that has no domains of its own.
    """
    findings = []
    for benchmark, name in domains:
        tests: dict[int, Excess | None] = {}
        n_documents = 0
        for step, pairs in earlier.items():
            inside = np.concatenate([(p.domains == name) & (b == benchmark.name) for b, p in pairs.items()])
            joined = _joined(list(pairs.values()))
            n_documents = int(inside.sum())
            domain, rest = joined.estimate(inside), joined.estimate(~inside)
            enough = min(n_documents, len(inside) - n_documents) >= MIN_DOCUMENTS
            tests[step] = domain_rise(domain, rest) if enough and domain is not None and rest is not None else None
        finding = _worst(blank("forgetting", benchmark, name), tests, alpha / max(1, len(domains)))
        if finding.not_tested and earlier:
            finding = replace(finding, not_tested=f"{n_documents} documents, or as few in all other domains")
        findings.append(finding)
    return findings


def chance_level(
    benchmark: BenchmarkVersion, earlier: Sequence[Earlier], noise: CheckpointNoise | None, alpha: float
) -> HealthFinding:
    """Is an accuracy that was above chance there no more?"""
    chance = benchmark.chance_level
    if chance is None:
        return blank("chance_level", benchmark, why="the benchmark declares no chance_level")
    tests = {
        look.step: lost_lead(look.pair.now, look.pair.earlier, chance, look.pair.clusters, noise) for look in earlier
    }
    return _worst(blank("chance_level", benchmark), tests, alpha, none="no earlier look was above chance")


def collapse(benchmark: BenchmarkVersion, now: LookScores, earlier: Sequence[Earlier], alpha: float) -> HealthFinding:
    """Is nearly every answer the same one, and was it not before?"""
    finding = blank("collapse", benchmark)
    n_modal, answer = now.modal
    if not n_modal:
        return replace(finding, not_tested="no answers were extracted")
    before = [look.step for look in earlier if look.scores.modal[0] <= MODAL_SHARE * len(look.scores.values)]
    if not before:
        return replace(finding, not_tested=_FIRST if not earlier else "the answers were as uniform before")
    n = len(now.values)
    p = collapse_p(n_modal, n)
    return replace(
        finding,
        subject=f"answer {answer!r}" if p <= alpha else "",
        against_step=before[0],
        observed=n_modal / n,
        threshold=MODAL_SHARE,
        p=p,
        alpha=alpha,
        alarm=p <= alpha,
    )


_FIRST = "the first look: nothing earlier to be held against"


def _worst(
    finding: HealthFinding, tests: Mapping[int, Excess | None], alpha: float, none: str = "too few items"
) -> HealthFinding:
    """The finding with the smallest p of its looks; each look has an even part of alpha."""
    found = {step: test for step, test in tests.items() if test is not None}
    if not found:
        return replace(finding, not_tested=none if tests else _FIRST)
    step, test = min(found.items(), key=lambda entry: (entry[1].p, -entry[0]))
    each = alpha / len(tests)
    return replace(
        finding,
        against_step=step,
        observed=test.estimate,
        threshold=test.threshold,
        se=test.se,
        p=test.p,
        alpha=each,
        detectable=test.detectable(each),
        alarm=test.p <= each,
    )


def _joined(pairs: Sequence[Pair]) -> Pair:
    """The items of several benchmarks of one metric as one; clusters of different benchmarks stay apart."""

    def both(arrays: Sequence[FloatArray]) -> FloatArray:
        return np.concatenate(arrays)

    weights = [p.weights for p in pairs if p.weights is not None]
    clusters = None
    if any(p.clusters is not None for p in pairs):
        codes, first = [], 0
        for p in pairs:
            own = np.arange(len(p.now)) if p.clusters is None else np.unique(p.clusters, return_inverse=True)[1]
            codes.append(own + first)
            first += int(own.max(initial=-1)) + 1
        clusters = np.concatenate(codes).astype(np.int64)
    return Pair(
        now=both([p.now for p in pairs]),
        earlier=both([p.earlier for p in pairs]),
        weights=(both([w[0] for w in weights]), both([w[1] for w in weights])) if len(weights) == len(pairs) else None,
        clusters=clusters,
        domains=np.concatenate([p.domains for p in pairs]),
    )
