"""What the benchmark of scoring scores: public outputs where they are, made-up ones, and a run of many outputs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from eval_tasks.records import Item, Plan, PromptTemplate, Response, ScorerRef, to_json
from eval_tasks.scoring import scorer_digest, scorer_version
from eval_tasks.store import Store
from tests.store import samples

BATCH = 10_000
_WORDS = ("red", "blue", "green", "gold", "grey", "pink", "teal", "plum", "rust", "sand")

Row = dict[str, Any]


def ifeval_rows(golden: Path, model: str = "gpt-4o-mini-2024-07-18") -> list[Row]:
    """A recorded model's responses to all 541 prompts; none where the data is not there."""
    prompts = golden / "ifeval/recorded/en_input_data.jsonl"
    if not prompts.exists():
        return []
    asked = {row["key"]: row for row in map(json.loads, prompts.read_text("utf-8").splitlines())}
    rows = []
    for answer in _lines(golden / f"ifeval/recorded/{model}.jsonl.gz"):
        row = asked[answer["key"]]
        names = [name.removeprefix("en:") for name in row["instruction_id_list"]]
        rows.append({**row, "instruction_id_list": names, "output": answer["response"] or ""})
    return rows


def gsm8k_rows(golden: Path) -> list[Row]:
    """A recorded model's solutions of the test questions; none where the data is not there."""
    questions = golden / "gsm8k/test.jsonl"
    if not questions.exists():
        return []
    answers = {row["question"]: row["answer"] for row in map(json.loads, questions.read_text("utf-8").splitlines())}
    rows = _lines(golden / "gsm8k/example_model_solutions.jsonl.gz")
    # They write "A: 18" where the convention has "#### 18".
    return [
        {
            "answer": answers[row["question"]],
            "output": row["175b_verification"]["solution"].replace("\nA: ", "\n#### "),
        }
        for row in rows
    ]


def exact_rows(n: int) -> Iterator[Row]:
    """Made-up short answers, of which about half are right."""
    for k in range(n):
        target = f"{_WORDS[k % 10]} {_WORDS[k // 10 % 10]} {k * 7919 % n}"
        yield {"answer": target, "output": target if k * 31 % 2 else f"The answer is {target}."}


def write_archive(store: Store, n: int) -> tuple[str, str]:
    """A closed run of `n` outputs on one exact-match benchmark that nobody has scored; run id and benchmark name."""
    items, responses = [], []
    scorer = ScorerRef(name="exact_match", version=scorer_version("exact_match"))
    benchmark = samples.benchmark(name="answers", version=str(n))
    for k, row in enumerate(exact_rows(n)):
        item_id = f"i{k:06d}"
        items.append(Item(item_id=item_id, fields={"question": f"Question {k}?"}, target=row["answer"], stratum="s"))
        responses.append((item_id, row["output"]))
    benchmark = replace(
        benchmark,
        kind="generation",
        template=PromptTemplate(item="{{ question }}", stop=("\n\n",)),
        scorer=scorer,
        scorer_digest=scorer_digest(scorer),
        primary_metric="exact_match",
        n_items=n,
        items_blob=store.blobs.put_items(items),
    )
    store.catalog.save_benchmark(benchmark)
    store.catalog.save_checkpoint(samples.checkpoint(checkpoint_id=f"{n:064x}", step=n, corpora=()))
    run = samples.run(n, step=n, status="closed")
    request = replace(run.request, checkpoint_id=f"{n:064x}", benchmark_ids=(benchmark.benchmark_id,))
    batches, results = [], {}
    for number, start in enumerate(range(0, n, BATCH)):
        part = responses[start : start + BATCH]
        batches.append(samples.batch(number, *(item_id for item_id, _ in part), benchmark_id=benchmark.benchmark_id))
        rows = [
            Response(
                benchmark_id=benchmark.benchmark_id,
                item_id=item_id,
                status="ok",
                prompt_digest="0" * 64,
                output=output,
                output_ids=tuple(range(12)),
                token_logprobs=((-0.5,) * 12,),
                finish_reason="stop",
                n_output_tokens=12,
            )
            for item_id, output in part
        ]
        results[number] = store.responses.write_batch(run.run_id, 0, number, rows)
    plan = Plan(
        run_id=run.run_id,
        request=request,
        environment=run.environment,
        checkpoint_uri="",
        shards=(),
        batches_blob=store.blobs.put_batches(batches),
        n_batches=len(batches),
        n_items=n,
    )
    store.responses.close(run.run_id, results)
    store.catalog.create_run(replace(run, request=request, plan_blob=store.blobs.put_json(to_json(plan))))
    return run.run_id, benchmark.name


def _lines(path: Path) -> Iterator[Row]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
