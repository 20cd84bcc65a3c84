"""One item's response -> its Score rows under the benchmark's scorer: statuses, weights, stops, reasoning, samples.

The rules that hold for every scorer are here, so that a scorer function sees only responses it can judge:
``missing`` and ``excluded`` have no value, ``invalid`` counts as 0 where more is better and has none for a loss.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from eval_tasks.errors import DataError, UserError
from eval_tasks.reasoning import Answer, answer_of
from eval_tasks.records import BenchmarkVersion, Item, Response, Score, ScorerRef
from eval_tasks.records.item import Status
from eval_tasks.registry.templates import Rendering
from eval_tasks.scoring.registry import Case, Excluded, Mark, Scorer, Unscoreable, find_scorer, merged_parameters
from eval_tasks.scoring.samples import combined, with_passes

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def score(benchmark: BenchmarkVersion, item: Item, response: Response) -> list[Score]:
    """The scores of `response`, one per metric of the benchmark's scorer, in the scorer's order.

    Raises DataError when the response is to another item or has another number of samples than the benchmark declares,
    UserError when the benchmark's scorer or stops are wrong.
    """
    if response.item_id != item.item_id:
        raise DataError(f"response to item {response.item_id!r} met item {item.item_id!r}: rows are out of step")
    found = find_scorer(benchmark.scorer.name)
    marks = _marks(found, benchmark, item, response)
    return [
        Score(
            benchmark_id=response.benchmark_id,
            item_id=item.item_id,
            metric=mark.metric,
            value=mark.value,
            weight=mark.weight,
            status=mark.status,
            reason=mark.reason,
            extracted=mark.extracted,
            detail=mark.detail,
            stratum=item.stratum,
            cluster=item.cluster,
            sample_values=mark.sample_values,
        )
        for mark in marks
    ]


def check_items(ref: ScorerRef, items: Iterable[Item]) -> None:
    """What a scorer wants to know of a benchmark's items when they are loaded.

    Raises UserError naming the item that the scorer could not score; logs once what it will skip.
    """
    found = find_scorer(ref.name)
    if found.check_items:
        found.check_items(list(items))


def cut_at_stops(text: str, stops: Sequence[str]) -> str:
    """`text` before the first of the stop strings. Raises UserError unless `stops` is a list of strings."""
    if not isinstance(stops, list | tuple) or not all(isinstance(stop, str) for stop in stops):
        raise UserError(f"stop strings must be a list of strings, not {stops!r}: write stop: [...]")
    for stop in stops:
        if stop:
            text = text.partition(stop)[0]
    return text


def clean_text(text: str) -> str:
    """`text` with every lone surrogate replaced by U+FFFD, so that it can be stored and encoded."""
    return _LONE_SURROGATE.sub("�", text)


def seen_of(benchmark: BenchmarkVersion, output: str) -> Answer:
    """What a scorer sees of an output: cut at the stop strings, without reasoning, free of lone surrogates."""
    stops, reasoning = benchmark.template.stop, benchmark.scorer.reasoning
    if reasoning is None:
        return Answer(text=clean_text(cut_at_stops(output, stops)))
    answer = answer_of(output, stops, reasoning)
    return replace(answer, text=clean_text(answer.text))


def _marks(found: Scorer, benchmark: BenchmarkVersion, item: Item, response: Response) -> Sequence[Mark]:
    sampling = benchmark.sampling
    if response.status != "ok" or sampling is None:
        if response.samples:
            raise DataError(f"item {item.item_id!r} was sampled, and {benchmark.name!r} declares no sampling")
        return with_passes(found.name, sampling, _output_marks(found, benchmark, item, response))
    if len(response.samples) != sampling.samples:
        raise DataError(
            f"item {item.item_id!r} of {benchmark.name!r} has {len(response.samples)} samples, not {sampling.samples}"
        )
    outputs = (replace(response, output=sample.output, samples=()) for sample in response.samples)
    return combined(found.name, sampling, [_output_marks(found, benchmark, item, output) for output in outputs])


def _output_marks(found: Scorer, benchmark: BenchmarkVersion, item: Item, response: Response) -> Sequence[Mark]:
    """The marks of one output."""
    weights: Mapping[str, float] = {}
    try:
        if found.weigh:
            weights = found.weigh(item)
        if response.status != "ok":
            return _unjudged(found, response.status, response.reason, weights)
        case, remark = _case(benchmark, item, response)
        marks = found.function(case)
        return [replace(mark, reason=mark.reason or remark) for mark in marks] if remark else marks
    except Excluded as outcome:
        return _without_value(found, "excluded", str(outcome), weights)
    except Unscoreable as outcome:
        return _unjudged(found, "invalid", str(outcome), weights)


def _case(benchmark: BenchmarkVersion, item: Item, response: Response) -> tuple[Case, str]:
    """What the scorer sees, and a remark on the output's reasoning blocks."""
    answer = seen_of(benchmark, response.output)
    case = Case(
        item=item,
        response=response,
        template=benchmark.template,
        rendering=Rendering(benchmark=benchmark.name, item_id=item.item_id, fields=item.fields),
        parameters=merged_parameters(benchmark.scorer),
        output=answer.text,
    )
    return case, answer.reason


def _unjudged(found: Scorer, status: Status, reason: str, weights: Mapping[str, float]) -> list[Mark]:
    if status != "invalid":
        return _without_value(found, status, reason, weights)
    return [
        Mark(
            metric=metric,
            value=0.0 if info.higher_is_better else None,
            weight=weights.get(metric, 1.0),
            status="invalid",
            reason=reason,
        )
        for metric, info in found.metrics.items()
    ]


def _without_value(found: Scorer, status: Status, reason: str, weights: Mapping[str, float]) -> list[Mark]:
    return [
        Mark(metric=metric, value=None, weight=weights.get(metric, 1.0), status=status, reason=reason)
        for metric in found.metrics
    ]
