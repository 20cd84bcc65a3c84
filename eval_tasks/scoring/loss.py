"""Held-out loss per item: summed logprob -> bits per byte (of the item's text in UTF-8) and bits per token.

Lower is better. The weights are the bytes and the tokens, so that pooling gives the loss of the whole text, as lm-eval
0.4.9's ``bits_per_byte`` does.
"""

from __future__ import annotations

import math

from eval_tasks.errors import DataError
from eval_tasks.scoring.registry import Case, Mark, MetricInfo, Unscoreable, scorer


@scorer(
    "loss",
    version="1",
    kinds=("loss",),
    metrics={
        "bits_per_byte": MetricInfo(higher_is_better=False, unit="bits per byte", binary=False, summary="pooled"),
        "bits_per_token": MetricInfo(higher_is_better=False, unit="bits per token", binary=False, summary="pooled"),
    },
)
def loss(case: Case) -> list[Mark]:
    """bits_per_byte and bits_per_token.

    The bytes are those that the engine has scored; a row that does not say how many (an imported one) is taken to have
    scored the whole text, unless it was cut: then only bits_per_token is known.
    """
    logprobs, per_token = case.response.logprobs, case.response.token_logprobs
    if len(logprobs) != 1 or len(per_token) != 1:
        raise DataError(f"item {case.item.item_id!r}: a loss has one continuation, not {len(logprobs)}")
    if not per_token[0]:
        raise Unscoreable("no token was scored")
    if not math.isfinite(logprobs[0]):
        raise Unscoreable("non-finite logprob")
    bits = -logprobs[0] / math.log(2)
    n_tokens = len(per_token[0])
    return [_per_byte(case, bits), Mark(metric="bits_per_token", value=bits / n_tokens, weight=float(n_tokens))]


def _per_byte(case: Case, bits: float) -> Mark:
    n_bytes = case.response.n_bytes
    if n_bytes == 0 and case.response.prompt_truncated:
        reason = "the text was cut to the context: how many of its bytes were scored is not known"
        return Mark(metric="bits_per_byte", value=None, status="invalid", reason=reason)
    n_bytes = n_bytes or len(case.rendering.text("item", case.template.item).encode("utf-8", "surrogatepass"))
    return Mark(metric="bits_per_byte", value=bits / n_bytes, weight=float(n_bytes))
