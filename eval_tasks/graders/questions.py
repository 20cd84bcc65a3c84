"""Stored outputs of one benchmark in one run -> the questions that a judge is put: items of a benchmark of its own.

An output that is no answer (its item was invalid, or is missing) makes no question. A sampled item makes one per
sample.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from eval_tasks.datasets import items_digest
from eval_tasks.errors import DataError
from eval_tasks.prompts import render_text, template_digest
from eval_tasks.records import BenchmarkVersion, DataSource, Item, Judge, Response, Run, ScorerRef
from eval_tasks.records.grader import JUDGE
from eval_tasks.registry import Rendering, names_in, render_choices
from eval_tasks.scoring import scorer_version, seen_of
from eval_tasks.store import Store

Answer = tuple[Item, Response]


def stored_answers(store: Store, run: Run, benchmark: BenchmarkVersion) -> Iterator[Answer]:
    """Each planned item of a closed run with its response; one without a row comes last, as ``missing``.

    Raises DataError for a row that was not planned, or is there twice.
    """
    plan = store.plan(run.plan_blob or "")
    batches = store.blobs.get_batches(plan.batches_blob)
    planned = {i for batch in batches if batch.benchmark_id == benchmark.benchmark_id for i in batch.item_ids}
    items = {item.item_id: item for item in store.blobs.get_items(benchmark.items_blob, planned)}
    for response in store.responses.rows(run.run_id, benchmark.benchmark_id):
        item = items.pop(response.item_id, None)
        if item is None:
            raise DataError(
                f"run {run.run_id}, {benchmark.name}: row {response.item_id!r} was not planned, or is there twice"
            )
        yield item, response
    for item_id, item in sorted(items.items()):
        yield (
            item,
            Response(
                benchmark_id=benchmark.benchmark_id,
                item_id=item_id,
                status="missing",
                prompt_digest="",
                reason="no row in a closed run",
            ),
        )


def question_ids(response: Response) -> list[str]:
    """The ids of the questions about a response: the item's own, of a sampled one ``ITEM#0``, ``ITEM#1`` ..."""
    if response.status != "ok":
        return []
    if response.samples:
        return [f"{response.item_id}#{n}" for n in range(len(response.samples))]
    return [response.item_id]


def questions(
    benchmark: BenchmarkVersion, few_shot_items: Sequence[Item], judge: Judge, answers: Collection[Answer]
) -> list[Item]:
    """The questions about all answers, with the fields that the judge's prompt reads and no others."""
    wanted = names_in(judge.template.item) | names_in(judge.template.system)
    found = []
    for item, response in answers:
        outputs = [sample.output for sample in response.samples] or [response.output]
        for question_id, output in zip(question_ids(response), outputs, strict=False):
            fields = _fields(benchmark, few_shot_items, item, output, wanted)
            found.append(Item(item_id=question_id, fields=fields, stratum=item.stratum, cluster=item.cluster))
    return found


def question_benchmark(judge: Judge, items: Sequence[Item] = (), *, about: str = "") -> BenchmarkVersion:
    """The benchmark of a judge's questions `about` one run's outputs; its name is one that no other may have."""
    scorer = ScorerRef(
        name="verdict",
        version=scorer_version("verdict"),
        parameters={"answers": dict(judge.answers), "pattern": judge.pattern},
        reasoning=judge.reasoning,
    )
    return BenchmarkVersion(
        name=f"{JUDGE}{judge.name}",
        version=f"{judge.version} {about}",
        kind="choice" if judge.kind == "logprob" else "generation",
        items_digest=items_digest(items),
        template_digest=template_digest(judge.template, None, []),
        scorer_digest=judge.verdict_digest,
        n_items=len(items),
        items_blob="",
        few_shot_blob=None,
        template=judge.template,
        few_shot=None,
        scorer=scorer,
        primary_metric="verdict",
        licence="as the outputs that are judged",
        source=DataSource(),
        created_at="",
        max_tokens=max(1, judge.max_tokens),
    )


def save_questions(store: Store, benchmark: BenchmarkVersion, items: Sequence[Item], now: str) -> BenchmarkVersion:
    """Keep the questions and their benchmark where a pod finds them; the same again is a no-op."""
    blob = store.blobs.put_items(items)
    return store.catalog.save_benchmark(replace(benchmark, items_blob=blob, created_at=now))


def _fields(
    benchmark: BenchmarkVersion, shots: Sequence[Item], item: Item, output: str, wanted: Collection[str]
) -> dict[str, Any]:
    part = Rendering(benchmark=benchmark.name, item_id=item.item_id, fields=item.fields)
    references = _references(benchmark, part, item)
    fields: dict[str, Callable[[], Any]] = {
        "question": lambda: part.text("item", benchmark.template.item),
        "prompt": lambda: render_text(benchmark, item, shots),
        "target": lambda: references[0] if references else "",
        "references": lambda: references,
        "output": lambda: seen_of(benchmark, output).text,
        "item": lambda: dict(item.fields),
    }
    return {name: give() for name, give in fields.items() if name in wanted}


def _references(benchmark: BenchmarkVersion, part: Rendering, item: Item) -> list[str]:
    """The reference answers as text; of a choice, the texts of the gold ones."""
    given = item.target if isinstance(item.target, list | tuple) else [item.target]
    if benchmark.kind == "choice":
        texts = render_choices(benchmark.template.choices, part)
        return [texts[index] for index in given]
    return [str(reference) for reference in given if reference is not None]
