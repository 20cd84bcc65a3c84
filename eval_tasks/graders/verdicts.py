"""A judge's rows on stored outputs -> score rows of the run that gave the outputs, on its benchmark's primary metric.

A judge that gave no verdict on an output says nothing of that output: the item is ``missing`` with the reason, which
widens the interval, and never wrong. The answers' logprobs, or the whole reply, stay in `detail` whatever came of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence

from eval_tasks.errors import DataError
from eval_tasks.graders.questions import question_ids
from eval_tasks.records import BenchmarkVersion, Item, Response, Score
from eval_tasks.scoring import score
from eval_tasks.scoring.run_rows import Answer

_LOST = "no row in a closed run"


def judged_scores(
    benchmark: BenchmarkVersion,
    answers: Sequence[Answer],
    asked: BenchmarkVersion,
    verdicts: Mapping[str, Response],
    notes: Mapping[str, Mapping[str, object]],
) -> Iterator[Score]:
    """One score per answer. `asked` is the benchmark of the questions, `verdicts` its rows and `notes` what else is to
    be kept of each reply, by question id.

    An output that was no answer keeps its status and reason.
    """
    for item, response in answers:
        ids = question_ids(response)
        if not ids:
            yield _unasked(benchmark, item, response)
            continue
        found = [_verdict(asked, verdicts.get(question_id), question_id) for question_id in ids]
        details = [_detail(asked, verdicts.get(question_id), notes.get(question_id)) for question_id in ids]
        yield _score(benchmark, item, found, details, sampled=bool(response.samples))


def _unasked(benchmark: BenchmarkVersion, item: Item, response: Response) -> Score:
    """As the benchmark's own scorer has it: an invalid output is wrong, whoever judges."""
    return Score(
        benchmark_id=benchmark.benchmark_id,
        item_id=item.item_id,
        metric=benchmark.primary_metric,
        value=0.0 if response.status == "invalid" else None,
        status=response.status,
        reason=response.reason,
        stratum=item.stratum,
        cluster=item.cluster,
    )


def _verdict(asked: BenchmarkVersion, response: Response | None, question_id: str) -> Score:
    if response is None:
        response = Response(
            benchmark_id=asked.benchmark_id, item_id=question_id, status="missing", prompt_digest="", reason=_LOST
        )
    [verdict] = score(asked, Item(item_id=question_id, fields={}), response)
    return verdict


def _score(
    benchmark: BenchmarkVersion, item: Item, verdicts: Sequence[Score], details: Sequence[str], *, sampled: bool
) -> Score:
    values = [v.value for v in verdicts if v.status == "ok" and v.value is not None]
    lost = [v.reason for v in verdicts if v.status != "ok"]
    whole = not lost
    if whole and len(values) != len(verdicts):
        raise DataError(f"item {item.item_id!r}: a verdict without a value")
    reason = f"judge: {lost[0]}" if lost else ""
    if sampled and lost:
        reason = f"judge: no verdict on {len(lost)} of {len(verdicts)} samples: {lost[0]}"
    extracted = [v.extracted for v in verdicts]
    return Score(
        benchmark_id=benchmark.benchmark_id,
        item_id=item.item_id,
        metric=benchmark.primary_metric,
        value=math.fsum(values) / len(values) if whole else None,
        status="ok" if whole else "missing",
        reason=reason,
        extracted=json.dumps(extracted, ensure_ascii=False) if sampled else extracted[0],
        detail=f"[{', '.join(details)}]" if sampled else details[0],
        stratum=item.stratum,
        cluster=item.cluster,
        sample_values=tuple(values) if sampled and whole else (),
    )


def _detail(asked: BenchmarkVersion, response: Response | None, note: Mapping[str, object] | None) -> str:
    """What the judge gave, as JSON; a logprob that is not finite is written as text."""
    if response is None:
        return "{}"
    if asked.kind != "choice":
        return json.dumps({"reply": response.output, **(note or {})}, ensure_ascii=False)
    values = [value if math.isfinite(value) else str(value) for value in response.logprobs]
    return json.dumps({"logprobs": dict(zip(asked.template.choices, values, strict=False))}, ensure_ascii=False)
