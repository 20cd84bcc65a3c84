"""The marks of an item's samples -> the item's marks: the mean of each metric, and pass@k. Scores no output itself."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import comb

from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.records import BenchmarkVersion, Sampling
from eval_tasks.records.item import Status
from eval_tasks.scoring.registry import Mark, MetricInfo, find_scorer


def pass_at_k(n: int, c: int, k: int) -> float:
    """The chance that k of an item's n samples, drawn without putting back, hold one of its c right ones.

    ``1 - C(n - c, k) / C(n, k)``, the unbiased estimator of Chen et al. 2021 (arXiv 2107.03374, equation 1), worked out
    in whole numbers and rounded once. Raises UserError for fewer samples than k: nothing unbiased is known then.
    """
    if not 1 <= k <= n:
        raise UserError(f"pass@{k} of {n} samples; k lies between 1 and the number of samples")
    if not 0 <= c <= n:
        raise UserError(f"{c} of {n} samples are right; give a number from 0 to {n}")
    return float(1 - Fraction(comb(n - c, k), comb(n, k)))


def metrics_of(scorer: str, sampling: Sampling | None) -> dict[str, MetricInfo]:
    """The metrics of a benchmark with that scorer, by name: the scorer's own, then its pass@k of each binary one."""
    own = find_scorer(scorer).metrics
    if sampling is None:
        return dict(own)
    metrics = {name: replace(info, binary=info.binary and sampling.samples == 1) for name, info in own.items()}
    for name, k in _passes(scorer, sampling):
        metrics[pass_name(name, k)] = MetricInfo(binary=k == sampling.samples)
    return metrics


def metric_of(benchmark: BenchmarkVersion, metric: str) -> MetricInfo:
    """What `metric` of `benchmark` means. Raises UserError with close names."""
    return check_metric(benchmark.scorer.name, benchmark.sampling, metric)


def check_metric(scorer: str, sampling: Sampling | None, metric: str) -> MetricInfo:
    """What `metric` means to a benchmark with that scorer and sampling. Raises UserError with close names."""
    metrics = metrics_of(scorer, sampling)
    if metric not in metrics:
        raise UserError(f"scorer {scorer!r} has no metric {metric!r}; {did_you_mean(metric, metrics)}")
    return metrics[metric]


def pass_name(metric: str, k: int) -> str:
    """What pass@k of a metric is called: ``strict_pass@4``."""
    return f"{metric}_pass@{k}"


def combined(scorer: str, sampling: Sampling, samples: Sequence[Sequence[Mark]]) -> list[Mark]:
    """The item's marks from those of its samples, each sample's in the scorer's order of metrics.

    An item with a sample that could not be judged is ``invalid``, that sample counting as its mark says.
    """
    means = [_mean([marks[i] for marks in samples]) for i in range(len(samples[0]))]
    by_metric = {mark.metric: mark for mark in means}
    passes = []
    for name, k in _passes(scorer, sampling):
        mark = by_metric[name]
        value = None if mark.value is None else pass_at_k(len(samples), round(sum(mark.sample_values)), k)
        passes.append(
            Mark(metric=pass_name(name, k), value=value, weight=mark.weight, status=mark.status, reason=mark.reason)
        )
    return [*means, *passes]


def with_passes(scorer: str, sampling: Sampling | None, marks: Sequence[Mark]) -> list[Mark]:
    """Marks of an item none of whose outputs was judged, and the same for its pass@k."""
    by_metric = {mark.metric: mark for mark in marks}
    wanted = [] if sampling is None else _passes(scorer, sampling)
    return [*marks, *(replace(by_metric[name], metric=pass_name(name, k)) for name, k in wanted)]


def _passes(scorer: str, sampling: Sampling) -> list[tuple[str, int]]:
    binary = [name for name, info in find_scorer(scorer).metrics.items() if info.binary]
    return [(name, k) for name in binary for k in sampling.pass_at]


def _mean(marks: Sequence[Mark]) -> Mark:
    """One metric of one item over its samples."""
    values = [mark.value for mark in marks if mark.value is not None]
    unsound: Status = next((mark.status for mark in marks if mark.status != "ok"), "ok")
    extracted = [mark.extracted for mark in marks]
    details = [mark.detail for mark in marks]
    all_valued = len(values) == len(marks)
    return Mark(
        metric=marks[0].metric,
        value=sum(values) / len(values) if all_valued else None,
        weight=marks[0].weight,
        status=unsound,
        reason=_reasons(marks),
        extracted=json.dumps(extracted, ensure_ascii=False) if any(e is not None for e in extracted) else None,
        detail=json.dumps(details, ensure_ascii=False) if any(details) else "",
        sample_values=tuple(values) if all_valued else (),
    )


def _reasons(marks: Sequence[Mark]) -> str:
    counts = Counter(mark.reason for mark in marks if mark.reason)
    return "; ".join(f"{n} of {len(marks)} samples: {reason}" for reason, n in counts.items())
