"""Stored outputs of one benchmark in one run -> the questions that a judge is put: items of a benchmark of its own.

An output that is no answer (its item was invalid, or is missing) makes no question. A sampled item makes one per
sample.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from eval_tasks.datasets import items_digest
from eval_tasks.prompts import render_text, template_digest
from eval_tasks.records import BenchmarkVersion, DataSource, Item, Judge, Response, ScorerRef
from eval_tasks.records.grader import JUDGE
from eval_tasks.registry import Rendering, names_in, render_choices
from eval_tasks.scoring import scorer_version, seen_of
from eval_tasks.scoring.run_rows import Answer
from eval_tasks.store import Store


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
