"""A run's items a page at a time: prompt, output and scores of each, beside another run's when that is asked for.

What is shown is what was computed: the prompt is rendered anew from the benchmark's stored template and items, and
where the checkpoint's tokenizer is at hand, held against the digest that the row has. A page reads two columns of the
whole benchmark to choose its items, and the rows of those items alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.checkpoint import max_context, read_config
from eval_tasks.errors import EvalError, UnknownError, UserError, did_you_mean
from eval_tasks.prompts import PromptBuilder, plain_prompts
from eval_tasks.records import BenchmarkVersion, EngineConfig, Item, Request, Response, Run
from eval_tasks.store import Store
from eval_tasks.tokenization import Tokenizer, load_tokenizer

MOST_ITEMS = 200
_NOT_AT_HAND = "not checked: the checkpoint's tokenizer is not at hand"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemScore:
    """One metric of an item under one grader. `value` in the metric's unit; None where it has none."""

    grader: str
    metric: str
    value: float | None
    extracted: str | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRow:
    """One item of a run. `prompt_check`: ``as recorded``, ``differs from what was recorded``, or why nobody knows.

    `choices`: what could follow the prompt, in the order of the response's log-probabilities.
    `tokens`: the text of each token that has a log-probability, in the shape of the response's `token_logprobs`; empty
    where the checkpoint's tokenizer is not at hand or reads the item otherwise today.
    `other`: the item's row in the run it is held against, None where there is none.
    """

    item_id: str
    stratum: str | None
    cluster: str | None
    prompt: str
    prompt_check: str
    target: str
    response: Response
    scores: tuple[ItemScore, ...]
    choices: tuple[str, ...] = ()
    tokens: tuple[tuple[str, ...], ...] = ()
    other: Response | None = None
    other_scores: tuple[ItemScore, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPage:
    """Rows in item_id order, of `n` items that fit. `after`: where the next page begins, None at the end."""

    run_id: str
    benchmark: str
    n: int
    rows: tuple[ItemRow, ...]
    after: str | None


def item_page(
    store: Store,
    run: Run,
    benchmark: BenchmarkVersion,
    *,
    status: str | None = None,
    discordant_with: Run | None = None,
    after: str | None = None,
    limit: int = 20,
) -> ItemPage:
    """The items of a closed run that follow the item `after`, at most `limit` (1 to MOST_ITEMS).

    `discordant_with`: only items whose primary score differs from that run's. Raises UserError for a limit out of
    range, a run without rows, or a benchmark that one of the runs does not have.
    """
    if not 1 <= limit <= MOST_ITEMS:
        raise UserError(f"limit is {limit}; give 1 to {MOST_ITEMS} items")
    table = store.responses.read(run.run_id, benchmark.benchmark_id, columns=["item_id", "status"])
    ids = table["item_id"]
    chosen = pc.equal(table["status"], status) if status else None
    if discordant_with is not None:
        differing = pc.is_in(ids, value_set=_discordant(store, run, discordant_with, benchmark))
        chosen = differing if chosen is None else pc.and_(chosen, differing)
    fitting = ids if chosen is None else ids.filter(chosen)
    following = fitting if after is None else fitting.filter(pc.greater(fitting, after))
    shown = following.slice(0, limit).to_pylist()
    rows = _rows(store, run, benchmark, shown, discordant_with) if shown else ()
    more = len(following) > len(shown)
    return ItemPage(
        run_id=run.run_id, benchmark=benchmark.name, n=len(fitting), rows=rows, after=shown[-1] if more else None
    )


def one_item(store: Store, run: Run, benchmark: BenchmarkVersion, item_id: str, beside: Run | None = None) -> ItemRow:
    """One item of a closed run, with the same item of the run `beside`. Raises UnknownError for an id without a row."""
    known = store.responses.read(run.run_id, benchmark.benchmark_id, columns=["item_id"])["item_id"]
    if not pc.any(pc.equal(known, item_id)).as_py():
        raise UnknownError(f"run {run.run_id[:12]} has no item {item_id!r} of {benchmark.name!r}")
    return _rows(store, run, benchmark, [item_id], beside)[0]


def benchmark_of(store: Store, run: Run, name: str) -> BenchmarkVersion:
    """The benchmark of that name in a run. Raises UnknownError with close names."""
    by_name = {b.name: b for b in store.catalog.benchmarks_by_id(run.request.benchmark_ids)}
    if name not in by_name:
        raise UnknownError(f"run {run.run_id[:12]} has no benchmark {name!r}; {did_you_mean(name, by_name)}")
    return by_name[name]


def _discordant(store: Store, a: Run, b: Run, benchmark: BenchmarkVersion) -> Any:
    """Ids of items whose primary score is not the same in both, or is there in one alone."""
    tables = [
        store.scores.read(
            run.run_id, benchmark.benchmark_id, metric=benchmark.primary_metric, columns=["item_id", "value"]
        )
        for run in (a, b)
    ]
    joined = tables[0].join(tables[1], "item_id", join_type="full outer", right_suffix=" of b")
    left, right = (joined[name].to_numpy(zero_copy_only=False) for name in ("value", "value of b"))
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    return joined["item_id"].filter(pa.array(~same)).combine_chunks()


def _rows(
    store: Store, run: Run, benchmark: BenchmarkVersion, ids: Sequence[str], other: Run | None
) -> tuple[ItemRow, ...]:
    items = {item.item_id: item for item in store.blobs.get_items(benchmark.items_blob, ids)}
    shots = store.blobs.get_items(benchmark.few_shot_blob) if benchmark.few_shot_blob else []
    own, scores = _answers(store, run, benchmark, ids), _scores(store, run, benchmark, ids)
    beside: Mapping[str, Response] = {}
    scores_beside: Mapping[str, tuple[ItemScore, ...]] = {}
    if other is not None:
        known = store.responses.read(other.run_id, benchmark.benchmark_id, columns=["item_id"])["item_id"]
        both = pc.filter(pa.array(ids), pc.is_in(pa.array(ids), value_set=known)).to_pylist()
        beside, scores_beside = _answers(store, other, benchmark, both), _scores(store, other, benchmark, both)
    shown = [items[item_id] for item_id in ids]
    prompts = plain_prompts(benchmark, shown, shots)
    tokenizer, requests = _read_today(run, benchmark, shots, shown)
    return tuple(
        ItemRow(
            item_id=item_id,
            stratum=items[item_id].stratum,
            cluster=items[item_id].cluster,
            prompt=prompts[item_id].context,
            prompt_check=_prompt_check(requests.get(item_id), own[item_id]),
            target="" if items[item_id].target is None else str(items[item_id].target),
            response=own[item_id],
            scores=scores.get(item_id, ()),
            choices=prompts[item_id].choices,
            tokens=_token_texts(tokenizer, requests.get(item_id), own[item_id]),
            other=beside.get(item_id),
            other_scores=scores_beside.get(item_id, ()),
        )
        for item_id in ids
    )


def _answers(store: Store, run: Run, benchmark: BenchmarkVersion, ids: Sequence[str]) -> dict[str, Response]:
    return {row.item_id: row for row in store.responses.rows(run.run_id, benchmark.benchmark_id, ids)}


def _scores(
    store: Store, run: Run, benchmark: BenchmarkVersion, ids: Sequence[str]
) -> Mapping[str, tuple[ItemScore, ...]]:
    """item_id -> scores by every grader, in the order of writing, and by metric."""
    wanted = pa.array(ids, type=pa.string())
    found: dict[str, list[ItemScore]] = {}
    columns = ["item_id", "metric", "value", "extracted", "detail"]
    for grader in store.scores.graders(run.run_id, benchmark.benchmark_id):
        table = store.scores.read(run.run_id, benchmark.benchmark_id, grader, columns=columns)
        for row in table.filter(pc.is_in(table["item_id"], value_set=wanted)).to_pylist():
            found.setdefault(row.pop("item_id"), []).append(ItemScore(grader=grader, **row))
    return {item_id: tuple(scores) for item_id, scores in found.items()}


def _read_today(
    run: Run, benchmark: BenchmarkVersion, shots: Sequence[Item], items: Sequence[Item]
) -> tuple[Tokenizer | None, Mapping[str, Request]]:
    """The checkpoint's tokenizer and, by item_id, what it makes of the items today; nothing where it is not at hand."""
    engine = run.request.engine
    folder = Path(run.checkpoint_uri.removeprefix("file://"))
    if not isinstance(engine, EngineConfig) or not run.checkpoint_uri or not folder.is_dir():
        return None, {}
    try:
        tokenizer = load_tokenizer(folder)
        context = max_context(read_config(folder))
        builder = PromptBuilder(benchmark, shots, tokenizer, engine, context, run.request.seed)
        return tokenizer, {request.item_id: request for request in builder.requests(items)}
    except (EvalError, OSError):  # it changed, or went, since it was evaluated
        return None, {}


def _prompt_check(request: Request | None, row: Response) -> str:
    """Whether the prompt that is made today has the digest of the one that was read by the model."""
    if request is None:
        return _NOT_AT_HAND
    return "as recorded" if request.prompt_digest == row.prompt_digest else "differs from what was recorded"


def _token_texts(tokenizer: Tokenizer | None, request: Request | None, row: Response) -> tuple[tuple[str, ...], ...]:
    if tokenizer is None or request is None or request.prompt_digest != row.prompt_digest:
        return ()
    if row.output_ids:
        sequences: Sequence[Sequence[int]] = [row.output_ids]
    elif row.samples:
        sequences = [sample.output_ids for sample in row.samples]
    else:
        sequences = request.continuations
    return tuple(tuple(tokenizer.decode([i], skip_special_tokens=False) for i in ids) for ids in sequences)
