"""Choice scoring: the sum of logprobs per choice -> acc and acc_norm, lm-eval 0.4.9's multiple_choice convention.

acc takes the choice with the highest logprob; acc_norm the one with the highest logprob per Unicode code point of the
choice's text, the target delimiter not counted. Ties go to the lowest index, as there, and are flagged in `detail`.
We differ in that a non-finite logprob or an empty choice makes the item ``invalid`` instead of a number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from eval_tasks.errors import DataError
from eval_tasks.records import Item
from eval_tasks.registry.templates import render_choices
from eval_tasks.scoring.registry import Case, Mark, MetricInfo, Unscoreable, scorer

_LONGEST_LABEL = 2


@scorer("choice", version="1", kinds=("choice",), metrics={"acc": MetricInfo(), "acc_norm": MetricInfo()})
def choice(case: Case) -> list[Mark]:
    """acc and acc_norm; `extracted` is the predicted label ("B") or, for choices with long texts, its index ("1")."""
    texts = render_choices(case.template.choices, case.rendering)
    logprobs = case.response.logprobs
    if len(logprobs) != len(texts):
        raise DataError(f"item {case.item.item_id!r} has {len(texts)} choices and {len(logprobs)} logprobs")
    gold = _gold(case.item, len(texts))
    if not all(texts):
        raise Unscoreable("empty choice")
    if not all(math.isfinite(value) for value in logprobs):
        raise Unscoreable("non-finite logprob")
    per_character = [value / len(text) for value, text in zip(logprobs, texts, strict=True)]
    return [_mark("acc", logprobs, texts, gold), _mark("acc_norm", per_character, texts, gold)]


def _mark(metric: str, values: Sequence[float], texts: Sequence[str], gold: Sequence[int]) -> Mark:
    best = max(values)
    tied = [index for index, value in enumerate(values) if value == best]
    labels = all(len(text) <= _LONGEST_LABEL for text in texts)
    return Mark(
        metric=metric,
        value=float(tied[0] in gold),
        extracted=texts[tied[0]] if labels else str(tied[0]),
        detail=json.dumps({"tied": tied}) if len(tied) > 1 else "",
    )


def _gold(item: Item, n_choices: int) -> list[int]:
    gold = item.target if isinstance(item.target, list | tuple) else [item.target]
    for index in gold:
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < n_choices:
            raise DataError(
                f"item {item.item_id!r} has target {item.target!r}: not an index of its {n_choices} choices"
            )
    return list(gold)
