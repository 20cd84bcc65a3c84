"""A run's items: a page of them, and one with prompt, output, log-probabilities and scores, beside another run's."""

from __future__ import annotations

from typing import get_args

from fastapi import APIRouter

from checkpoint_eval.api.access import READ
from checkpoint_eval.api.archive import Archive
from checkpoint_eval.pages.page import Field, Form, Page, Section, Text, html, link, listing, table
from checkpoint_eval.pages.viewer import Visitor
from eval_tasks.item_pages import ItemRow, ItemScore, benchmark_of, item_page, one_item
from eval_tasks.records import Response
from eval_tasks.records.item import Status
from eval_tasks.report.numbers import plain
from eval_tasks.report.tables import Table

router = APIRouter(dependencies=READ)

_ON_A_PAGE = 25
_SHOWN = 160
_TOKENS = 400


@router.get("/runs/{run_id}/items")
def items(
    store: Archive,
    viewer: Visitor,
    run_id: str,
    benchmark: str,
    status: str = "",
    discordant_with: str = "",
    after: str = "",
) -> str:
    """Items of one benchmark that fit the filters, in the order of their ids."""
    run = store.catalog.run(run_id)
    other = store.catalog.run(discordant_with) if discordant_with else None
    page = item_page(
        store,
        run,
        benchmark_of(store, run, benchmark),
        status=status or None,
        discordant_with=other,
        after=after or None,
        limit=_ON_A_PAGE,
    )
    asked = {"benchmark": benchmark, "status": status, "discordant_with": discordant_with}
    path = f"runs/{run.run_id}/items"
    rows = [
        (
            link(row.item_id, f"{path}/{benchmark}/{row.item_id}", discordant_with=discordant_with),
            row.response.status,
            _scores(row.scores),
            _one_line(answer_text(row.response)),
            *([_scores(row.other_scores), _one_line(answer_text(row.other)) if row.other else "–"] if other else []),
        )
        for row in page.rows
    ]
    columns = {"Item": "code", "Status": "", "Scores": "", "Answer": ""}
    columns |= {"Scores of the other": "", "Answer of the other": ""} if other else {}
    names = [store.catalog.benchmark_by_id(i).name for i in run.request.benchmark_ids]
    by = Form(
        action=path,
        method="get",
        submit="Filter",
        fields=(
            Field(name="benchmark", label="Benchmark", value=benchmark, options=tuple((n, n) for n in names)),
            Field(
                name="status", label="Status", value=status, options=(("", "any"), *((s, s) for s in get_args(Status)))
            ),
            Field(name="discordant_with", label="Scored otherwise than in run", value=discordant_with),
        ),
    )
    section = listing(
        "items",
        f"Items of {benchmark}",
        columns,
        rows,
        notes=(f"{page.n:,} items fit.",),
        forms=(by,),
        links=(link("Next page", path, **asked, after=page.after),) if page.after else (),
        empty="No item fits.",
    )
    crumbs = (("runs", "Runs"), (f"runs/{run.run_id}", run.run_id[:12]))
    return html(Page(title=f"Items of {benchmark}", here="runs", crumbs=crumbs, sections=(section,)), viewer)


@router.get("/runs/{run_id}/items/{benchmark}/{item_id:path}")
def item(store: Archive, viewer: Visitor, run_id: str, benchmark: str, item_id: str, discordant_with: str = "") -> str:
    """One item: what the model read, what it wrote, token by token, and what graders said."""
    run = store.catalog.run(run_id)
    other = store.catalog.run(discordant_with) if discordant_with else None
    row = one_item(store, run, benchmark_of(store, run, benchmark), item_id, other)
    crumbs = (
        ("runs", "Runs"),
        (f"runs/{run.run_id}", run.run_id[:12]),
        (f"runs/{run.run_id}/items?benchmark={benchmark}", benchmark),
    )
    sections = [
        Section(
            title="Prompt",
            name="prompt",
            notes=(f"Prompt: {row.prompt_check}.",),
            texts=(Text(label="Prompt", body=row.prompt),),
        ),
        _answered("Answer", "answer", row, row.response, row.scores, row.tokens),
    ]
    if other is not None and row.other is not None:
        sections.append(_answered(f"Answer of run {other.run_id[:12]}", "other", row, row.other, row.other_scores))
    page = Page(
        title=f"{benchmark}: {item_id}",
        here="runs",
        crumbs=crumbs,
        lead=(f"Stratum {row.stratum or 'none'}, cluster {row.cluster or 'none'}",),
        sections=tuple(sections),
    )
    return html(page, viewer)


def _answered(
    title: str,
    name: str,
    item: ItemRow,
    row: Response,
    scores: tuple[ItemScore, ...],
    tokens: tuple[tuple[str, ...], ...] = (),
) -> Section:
    facts = {
        "Status": f"{row.status}{f': {row.reason}' if row.reason else ''}",
        "Reference": item.target,
        "Finished": row.finish_reason or "–",
        "Tokens read, written": f"{row.n_prompt_tokens:,}, {row.n_output_tokens:,}",
    }
    graded = table(
        f"{name}-scores",
        "Scores by grader",
        {"Grader": "", "Metric": "", "Value": "number", "Extracted": "", "Detail": ""},
        [(s.grader, s.metric, plain(s.value), s.extracted or "–", _one_line(s.detail) or "–") for s in scores],
    )
    about = table(f"{name}-facts", "About it", {"": "", "Value": ""}, list(facts.items()))
    written = () if item.choices else (Text(label="Output", body=answer_text(row)),)
    return Section(
        title=title,
        name=name,
        texts=(*written, *_tokens(item, row, tokens)),
        tables=(*_choices(name, item, row), graded, about),
        empty="No grader has scored it.",
    )


def _choices(name: str, item: ItemRow, row: Response) -> tuple[Table, ...]:
    if not item.choices or len(row.logprobs) != len(item.choices):
        return ()
    best = row.logprobs.index(max(row.logprobs))
    rows = [
        (f"{k}", text, plain(row.logprobs[k]), "chosen" if k == best else "–") for k, text in enumerate(item.choices)
    ]
    columns = {"": "", "Continuation": "", "Sum of log-probabilities (nats)": "number", "By acc": ""}
    return (table(f"{name}-choices", "Continuations", columns, rows),)


def _tokens(item: ItemRow, row: Response, tokens: tuple[tuple[str, ...], ...]) -> tuple[Text, ...]:
    """Log-probabilities in nats of each token of what could follow, or of the text itself, beside the token's text."""
    sequences = row.token_logprobs or tuple(sample.token_logprobs for sample in row.samples)
    if not any(sequences):
        return ()
    names = item.choices if len(item.choices) == len(sequences) else [str(k) for k in range(len(sequences))]
    texts = tokens if [len(t) for t in tokens] == [len(s) for s in sequences] else None
    lines = []
    for k, (name, values) in enumerate(zip(names, sequences, strict=True)):
        shown = [plain(value) for value in values[:_TOKENS]]
        if texts is not None:
            shown = [f"{text!r} {value}" for text, value in zip(texts[k], shown, strict=False)]
        if len(values) > _TOKENS:
            shown.append(f"and {len(values) - _TOKENS:,} more")
        lines.append(f"{name!r}:\n  " + ("\n  " if texts else " ").join(shown))
    return (Text(label="Log-probabilities, token by token (nats)", body="\n".join(lines), is_open=False),)


def answer_text(row: Response) -> str:
    """What the model wrote, or which continuation it found the likeliest."""
    if row.samples:
        return "\n\n".join(f"[{k}] {sample.output}" for k, sample in enumerate(row.samples))
    if row.output or not row.logprobs:
        return row.output
    best = max(range(len(row.logprobs)), key=lambda k: row.logprobs[k])
    return f"continuation {best} of {len(row.logprobs)}, {plain(row.logprobs[best])} nats"


def _scores(scores: tuple[ItemScore, ...]) -> str:
    return ", ".join(f"{score.metric} {plain(score.value)}" for score in scores) or "–"


def _one_line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else f"{flat[:_SHOWN]} …"
