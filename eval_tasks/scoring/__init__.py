"""An item and the response to it -> scores, one per metric. Knows no engine, no suite, and no store but in `run_rows`.

Where a scorer mirrors a convention, the convention is that of lm-evaluation-harness at `LM_EVAL_VERSION`; each place
where we differ on purpose is named in the scorer's module. A scorer is one function under `@scorer` in one module,
with one test file and one file of frozen vectors.
"""

from eval_tasks.scoring import (
    choice,
    continuation,
    exact_match,
    filtered_match,
    gsm8k,
    ifeval,
    loss,
    numeric,
    regex,
    strict_flexible,
    verdict,
)
from eval_tasks.scoring.marking import check_items, score, seen_of
from eval_tasks.scoring.registry import (
    MetricInfo,
    metric_info,
    primary_metric,
    scorer,
    scorer_metrics,
    scorer_names,
    scorer_version,
    validate_scorer,
)
from eval_tasks.scoring.samples import check_metric, metric_of, metrics_of
from eval_tasks.scoring.vector_file import check_scorer, scorer_digest

LM_EVAL_VERSION = "0.4.9"

__all__ = [
    "LM_EVAL_VERSION",
    "MetricInfo",
    "check_items",
    "check_metric",
    "check_scorer",
    "choice",
    "continuation",
    "exact_match",
    "filtered_match",
    "gsm8k",
    "ifeval",
    "loss",
    "metric_info",
    "metric_of",
    "metrics_of",
    "numeric",
    "primary_metric",
    "regex",
    "score",
    "scorer",
    "scorer_digest",
    "scorer_metrics",
    "scorer_names",
    "scorer_version",
    "seen_of",
    "strict_flexible",
    "validate_scorer",
    "verdict",
]
