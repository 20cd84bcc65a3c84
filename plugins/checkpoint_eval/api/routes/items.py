"""A run's items: raw prompts and outputs, a page at a time, as JSON or as an Arrow stream."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Annotated, Any

import pyarrow as pa
from fastapi import APIRouter, Header, Query
from fastapi.responses import Response as HTTPResponse
from pydantic import BaseModel, Field

from checkpoint_eval.api.access import READ
from checkpoint_eval.api.archive import Archive
from checkpoint_eval.api.problems import documented
from eval_tasks.item_pages import MOST_ITEMS, ItemRow, ItemScore, benchmark_of, item_page
from eval_tasks.records import Response
from eval_tasks.records.item import Status

router = APIRouter(tags=["runs"])

ARROW = "application/vnd.apache.arrow.stream"
_NUMBERS = pa.list_(pa.float64())
_ANSWER = pa.struct(
    {
        "status": pa.string(),
        "reason": pa.string(),
        "output": pa.string(),
        "output_ids": pa.list_(pa.int64()),
        "finish_reason": pa.string(),
        "logprobs": _NUMBERS,
        "token_logprobs": pa.list_(_NUMBERS),
        "n_prompt_tokens": pa.int64(),
        "n_output_tokens": pa.int64(),
        "prompt_truncated": pa.bool_(),
        "output_truncated": pa.bool_(),
        "samples": pa.list_(pa.string()),
    }
)
_SCORES = pa.list_(
    pa.struct(
        {
            "grader": pa.string(),
            "metric": pa.string(),
            "value": pa.float64(),
            "extracted": pa.string(),
            "detail": pa.string(),
        }
    )
)
ARROW_SCHEMA = pa.schema(
    {
        "item_id": pa.string(),
        "stratum": pa.string(),
        "cluster": pa.string(),
        "prompt": pa.string(),
        "prompt_check": pa.string(),
        "target": pa.string(),
        "answer": _ANSWER,
        "scores": _SCORES,
        "other": _ANSWER,
        "other_scores": _SCORES,
    }
)
"""Columns of every page as Arrow, whatever the page holds, so that pages can be put one after another."""

Number = float | None
"""A logarithm of a probability in nats; null where it was not finite."""


class Answer(BaseModel):
    """What the model wrote for an item, or the log-probabilities it gave."""

    status: Status
    reason: str
    output: str
    output_ids: list[int]
    finish_reason: str
    logprobs: list[Number] = Field(description="Sum per continuation, in nats; null where not finite.")
    token_logprobs: list[list[Number]]
    n_prompt_tokens: int
    n_output_tokens: int
    prompt_truncated: bool
    output_truncated: bool
    samples: list[str] = Field(description="The outputs, of an item that is sampled.")

    @classmethod
    def of(cls, row: Response) -> Answer:
        """The answer of a stored row."""
        return cls(
            status=row.status,
            reason=row.reason,
            output=row.output,
            output_ids=list(row.output_ids),
            finish_reason=row.finish_reason,
            logprobs=_finite(row.logprobs),
            token_logprobs=[_finite(values) for values in row.token_logprobs],
            n_prompt_tokens=row.n_prompt_tokens,
            n_output_tokens=row.n_output_tokens,
            prompt_truncated=row.prompt_truncated,
            output_truncated=row.output_truncated,
            samples=[sample.output for sample in row.samples],
        )


class ShownItem(BaseModel):
    """One item. `prompt` is rendered anew; `prompt_check` says whether it is what the model read."""

    item_id: str
    stratum: str | None
    cluster: str | None
    prompt: str
    prompt_check: str
    target: str
    answer: Answer
    scores: list[ItemScore]
    other: Answer | None = Field(description="The same item in the run `discordant_with`.")
    other_scores: list[ItemScore]

    @classmethod
    def of(cls, row: ItemRow) -> ShownItem:
        """The item of a page's row."""
        return cls(
            item_id=row.item_id,
            stratum=row.stratum,
            cluster=row.cluster,
            prompt=row.prompt,
            prompt_check=row.prompt_check,
            target=row.target,
            answer=Answer.of(row.response),
            scores=list(row.scores),
            other=None if row.other is None else Answer.of(row.other),
            other_scores=list(row.other_scores),
        )


class ItemPage(BaseModel):
    """Items in the order of their ids; `n` fit the filters. `after`: what the next page is asked for with."""

    run_id: str
    benchmark: str
    n: int
    items: list[ShownItem]
    after: str | None


@router.get(
    "/runs/{run_id}/items",
    dependencies=READ,
    response_model=ItemPage,
    responses={
        200: {"content": {ARROW: {"schema": {"type": "string", "format": "binary"}}}},
        **documented(HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT),
    },
)
def items(
    store: Archive,
    run_id: str,
    benchmark: str,
    status: Status | None = None,
    discordant_with: Annotated[str | None, Query(description="A run: only items whose score differs from it.")] = None,
    after: str | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST_ITEMS)] = 20,
    accept: Annotated[str, Header()] = "application/json",
) -> Any:
    """Items of one benchmark of a closed run, in the order of their ids."""
    run = store.catalog.run(run_id)
    page = item_page(
        store,
        run,
        benchmark_of(store, run, benchmark),
        status=status,
        discordant_with=store.catalog.run(discordant_with) if discordant_with else None,
        after=after,
        limit=limit,
    )
    shown = ItemPage(
        run_id=page.run_id,
        benchmark=page.benchmark,
        n=page.n,
        items=[ShownItem.of(row) for row in page.rows],
        after=page.after,
    )
    return HTTPResponse(_arrow(shown), media_type=ARROW) if ARROW in accept else shown


def _finite(values: tuple[float, ...]) -> list[Number]:
    return [value if math.isfinite(value) else None for value in values]


def _arrow(page: ItemPage) -> bytes:
    """The page's items as an Arrow IPC stream; `n` and `after` are in the schema's metadata."""
    table = pa.Table.from_pylist([item.model_dump() for item in page.items], schema=ARROW_SCHEMA)
    table = table.replace_schema_metadata({"n": str(page.n), "after": page.after or ""})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
