"""The log-probability of one given continuation (LAMBADA's last word): a choice benchmark with a single choice.

`nats` is its negative log-probability; the exponential of the mean over items is lm-eval 0.4.9's `perplexity`. Lower is
better. Whether greedy decoding would write the continuation is not known from its log-probability, and is not scored.
"""

from __future__ import annotations

import math

from eval_tasks.errors import DataError
from eval_tasks.scoring.registry import Case, Mark, MetricInfo, Unscoreable, scorer


@scorer(
    "continuation",
    version="1",
    kinds=("choice",),
    metrics={
        "nats": MetricInfo(higher_is_better=False, unit="nats", binary=False),
        "bits_per_token": MetricInfo(higher_is_better=False, unit="bits per token", binary=False, summary="pooled"),
    },
)
def continuation(case: Case) -> list[Mark]:
    """nats, and bits_per_token pooled over the continuations' tokens."""
    logprobs, per_token = case.response.logprobs, case.response.token_logprobs
    if len(logprobs) != 1 or len(per_token) != 1:
        raise DataError(f"item {case.item.item_id!r}: one continuation is scored, not {len(logprobs)}")
    if not per_token[0]:
        raise Unscoreable("no token was scored")
    if not math.isfinite(logprobs[0]):
        raise Unscoreable("non-finite logprob")
    n = len(per_token[0])
    bits = -logprobs[0] / math.log(2)
    return [
        Mark(metric="nats", value=-logprobs[0]),
        Mark(metric="bits_per_token", value=bits / n, weight=float(n)),
    ]
