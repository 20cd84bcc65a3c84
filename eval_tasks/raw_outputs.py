"""Five raw outputs of a benchmark, by a fixed rule: seeded by run and item id, spread over statuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eval_tasks.digests import digest_parts
from eval_tasks.prompts import render_text
from eval_tasks.records import BenchmarkVersion, Item, Response, SampleOutput
from eval_tasks.store import Store

N_SAMPLES = 5
_PROMPT_TAIL_CHARS = 600
_OUTPUT_CHARS = 1_000


def choose(run_id: str, statuses: Mapping[str, str], n: int = N_SAMPLES) -> list[str]:
    """`n` item ids, taken in turn from each status (worst first), in an order fixed by (run_id, item_id)."""
    rank = {"invalid": 0, "missing": 1, "ok": 2, "excluded": 3}
    groups: dict[str, list[str]] = {}
    for item_id in sorted(statuses, key=lambda i: digest_parts([run_id, i])):
        groups.setdefault(statuses[item_id], []).append(item_id)
    chosen: list[str] = []
    queues = [groups[status] for status in sorted(groups, key=lambda s: rank.get(s, 9))]
    while len(chosen) < n and any(queues):
        for queue in queues:
            if queue and len(chosen) < n:
                chosen.append(queue.pop(0))
    return chosen


def take_samples(store: Store, run_id: str, benchmark: BenchmarkVersion, grader: str) -> tuple[SampleOutput, ...]:
    """Prompt tail, output, extracted answer and gold of five items."""
    statuses = store.responses.read(run_id, benchmark.benchmark_id, columns=["item_id", "status"])
    chosen = choose(run_id, dict(zip(statuses["item_id"].to_pylist(), statuses["status"].to_pylist(), strict=True)))
    items = {i.item_id: i for i in store.blobs.get_items(benchmark.items_blob, chosen)}
    shots = store.blobs.get_items(benchmark.few_shot_blob) if benchmark.few_shot_blob else []
    responses = {r.item_id: r for r in store.responses.rows(run_id, benchmark.benchmark_id, chosen)}
    scores = store.scores.read(run_id, benchmark.benchmark_id, grader, benchmark.primary_metric)
    extracted = dict(zip(scores["item_id"].to_pylist(), scores["extracted"].to_pylist(), strict=True))
    samples = []
    for item_id in chosen:
        response = responses[item_id]
        output = _shown(response)
        samples.append(
            SampleOutput(
                item_id=item_id,
                status=response.status if not response.reason else f"{response.status}: {response.reason}",
                prompt_tail=render_text(benchmark, items[item_id], shots)[-_PROMPT_TAIL_CHARS:],
                output=output[:_OUTPUT_CHARS],
                extracted=extracted.get(item_id),
                gold=_gold(benchmark, items[item_id]),
            )
        )
    return tuple(samples)


def sample_lines(samples: Sequence[SampleOutput]) -> list[str]:
    """The outputs as lines of an alert's body."""
    lines = []
    for number, sample in enumerate(samples, start=1):
        lines += [
            f"[{number}] item {sample.item_id} ({sample.status})",
            f"  prompt ends: {sample.prompt_tail[-200:]!r}",
            f"  output: {sample.output[:300]!r}",
            f"  extracted: {sample.extracted!r}   gold: {sample.gold[:200]!r}",
        ]
    return lines


def _shown(response: Response) -> str:
    """The output, an even part of each sample, or the logprobs where there is no text."""
    if response.samples:
        each = _OUTPUT_CHARS // len(response.samples) - len("[99] \n")
        return "\n".join(f"[{n}] {s.output[: max(each, 20)]}" for n, s in enumerate(response.samples, start=1))
    return response.output or ", ".join(f"{value:.4f}" for value in response.logprobs)


def _gold(benchmark: BenchmarkVersion, item: Item) -> str:
    if benchmark.kind == "choice" and isinstance(item.target, int):
        return f"choice {item.target}"
    return "" if item.target is None else str(item.target)
