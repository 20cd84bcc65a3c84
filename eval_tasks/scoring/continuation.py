"""The log-probability of one given continuation (LAMBADA's last word): a choice benchmark with a single choice.

`nats` is its negative log-probability; the exponential of the mean over items is lm-eval 0.4.9's `perplexity`. `acc` is
its `acc` of loglikelihood tasks: 1 when greedy decoding would write the continuation. What recorded rows do not hold
(the number of tokens, whether greedy decoding agrees) is ``excluded`` in that metric alone.
"""

from __future__ import annotations

import math

from eval_tasks.errors import DataError
from eval_tasks.records import Response
from eval_tasks.scoring.registry import Case, Mark, MetricInfo, Unscoreable, scorer


@scorer(
    "continuation",
    version="2",
    kinds=("choice",),
    metrics={
        "nats": MetricInfo(higher_is_better=False, unit="nats", binary=False),
        "bits_per_token": MetricInfo(higher_is_better=False, unit="bits per token", binary=False, summary="pooled"),
        "acc": MetricInfo(),
    },
)
def continuation(case: Case) -> list[Mark]:
    """nats; bits_per_token pooled over the continuations' tokens; acc."""
    logprobs, per_token = case.response.logprobs, case.response.token_logprobs
    if len(logprobs) != 1 or len(per_token) > 1:
        raise DataError(f"item {case.item.item_id!r}: one continuation is scored, not {len(logprobs)}")
    if per_token == ((),):
        raise Unscoreable("no token was scored")
    if not math.isfinite(logprobs[0]):
        raise Unscoreable("non-finite logprob")
    return [Mark(metric="nats", value=-logprobs[0]), _bits_per_token(case.response), _acc(case.response)]


def _bits_per_token(response: Response) -> Mark:
    if not response.token_logprobs:
        return _unknown("bits_per_token", "its tokens were not recorded")
    n = len(response.token_logprobs[0])
    return Mark(metric="bits_per_token", value=-response.logprobs[0] / math.log(2) / n, weight=float(n))


def _acc(response: Response) -> Mark:
    if len(response.greedy) != 1:
        return _unknown("acc", "whether greedy decoding agrees was not recorded")
    return Mark(metric="acc", value=float(response.greedy[0]))


def _unknown(metric: str, reason: str) -> Mark:
    return Mark(metric=metric, value=None, status="excluded", reason=reason)
