"""What the scorers' tests share: a response scored under a benchmark that has nothing but a scorer and a template."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eval_tasks.records import BenchmarkVersion, DataSource, Item, PromptTemplate, Response, Score, ScorerRef
from eval_tasks.scoring import score, scorer_version

ScoreOne = Callable[..., dict[str, Score]]


@pytest.fixture
def score_one() -> ScoreOne:
    """Score one response; gives the scores by metric."""

    def score_response(
        scorer: str,
        *,
        target: Any = None,
        fields: dict[str, Any] | None = None,
        template: dict[str, Any] | None = None,
        parameters: dict[str, Any] | None = None,
        **response: Any,
    ) -> dict[str, Score]:
        benchmark = BenchmarkVersion(
            name="test",
            version="1",
            kind="generation",
            items_digest="",
            template_digest="",
            scorer_digest="",
            n_items=1,
            items_blob="",
            few_shot_blob=None,
            template=PromptTemplate(**{"item": "", **(template or {})}),
            few_shot=None,
            scorer=ScorerRef(name=scorer, version=scorer_version(scorer), parameters=parameters or {}),
            primary_metric="",
            licence="",
            source=DataSource(),
            created_at="",
        )
        item = Item(item_id="item-7", fields=fields or {}, target=target, stratum="s", cluster="c")
        given = {"benchmark_id": "b", "item_id": "item-7", "status": "ok", "prompt_digest": "", **response}
        return {found.metric: found for found in score(benchmark, item, Response(**given))}

    return score_response
