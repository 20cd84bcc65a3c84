"""Task files of lm-eval's own wheel, converted, and run by both: requests, gold answers and scores, item by item.

Neither side has a model: lm-eval's evaluator asks `lm_eval_worker` for made-up answers, and the same answers are scored
here. Examples are the first rows on both sides, since lm-eval's draw is a difference on purpose (docs/benchmarks.md).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eval_tasks.datasets import load_dataset
from eval_tasks.digests import digest_bytes
from eval_tasks.errors import UserError
from eval_tasks.lm_eval_tasks import Converted, Options, Refusal, convert, read_task_file
from eval_tasks.prompts import Composer
from eval_tasks.prompts.few_shot import Shots
from eval_tasks.records import BenchmarkVersion, Item, Response
from eval_tasks.register import register_benchmark
from eval_tasks.registry import BenchmarkSpec, load_benchmark_file
from eval_tasks.registry.yaml_file import dump_yaml
from eval_tasks.scoring import score
from eval_tasks.store import Store
from tests.parity.made_rows import made_rows
from tests.parity.reference import Reference

N_ROWS = 12
N_EXAMPLES = 9
_STRICT = "metric 'strict' is filter "


class NoRowsError(Exception):
    """No made-up rows suit the task."""


def task_files(folder: Path) -> Iterator[tuple[Path, Converted]]:
    """The task files below `folder` that convert, one per task name."""
    seen = set()
    for path in sorted(folder.rglob("*.yaml")):
        try:
            file = read_task_file(path)
            if isinstance(file.settings.get("task"), str):
                found = convert(file, Options())
                if found.name not in seen:
                    seen.add(found.name)
                    yield path, found
        except (Refusal, UserError):
            continue


def shape_of(converted: Converted) -> str:
    """What makes tasks alike but for their words: kind, scorer, and every expression of their templates."""
    document = converted.document
    prompt, few_shot = document["prompt"], document.get("few_shot", {})
    parts = [prompt["item"], prompt.get("target"), document["item"].get("target"), prompt.get("description")]
    choices = prompt.get("choices", "")
    parts += [choices] if isinstance(choices, str) else []
    expressions = [re.findall(r"\{[{%].*?[%}]\}", str(part), re.DOTALL) for part in parts]
    form = [document["kind"], sorted(map(str, document["scorer"].get("parameters", {}).items())), sorted(few_shot)]
    return json.dumps([form, expressions, isinstance(choices, str) or len(choices)])


def differences(
    path: Path,
    num_fewshot: int | None,
    reference: Reference,
    store: Store,
    folder: Path,
    theirs: Path | None = None,
) -> list[str]:
    """How our reading of the task file at `path` differs from lm-eval's; none when it is the same instrument.

    `theirs` is the file that lm-eval reads, where that is another one.

    Raises NoRowsError where nothing could be made up, Refusal where the task does not convert with so many examples.
    """
    converted = convert(read_task_file(path), Options(num_fewshot=num_fewshot))
    spec_rows, examples = _rows(converted)
    benchmark_file = _written(converted, spec_rows, examples, folder)
    benchmark = register_benchmark(store, benchmark_file)
    spec = load_benchmark_file(benchmark_file)
    dataset = load_dataset(spec, folder)
    answer = reference.ask(
        "run_task", path=str(theirs or path), rows=spec_rows, examples=examples or spec_rows, num_fewshot=num_fewshot
    )
    if "error" in answer:
        return [f"lm-eval: {answer['error']}"]
    shots = Shots(benchmark.name, benchmark.few_shot, dataset.few_shot)
    composer = Composer(benchmark.name, benchmark.kind, benchmark.template, shots)
    items = {item.fields["row"]: item for item in dataset.items}
    found = []
    for sample in answer["samples"]:
        item = items[sample["doc"]["row"]]
        if benchmark.few_shot and not benchmark.few_shot.source and item.fields["row"] < benchmark.few_shot.k:
            continue  # theirs shows one example less where it has drawn the item itself
        found += _request_differences(benchmark, composer, item, sample)
        found += _score_differences(benchmark, converted.notes, item, sample)
    if len(answer["samples"]) < len(items):
        found.append(f"{len(answer['samples'])} samples of {len(items)} items")
    return found


def _rows(converted: Converted) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    document = _pinned(converted.document)
    spec = BenchmarkSpec.model_validate(document)
    rows = made_rows(spec, N_ROWS)
    examples = made_rows(spec, N_EXAMPLES, first=N_ROWS)
    if rows is None or examples is None:
        raise NoRowsError(str(converted.task))
    for column, value in converted.document["source"].get("where", {}).items():
        for row in (*rows, *examples):  # one in four is to be left out
            row[column] = f"not {value}" if row["row"] % 4 == 3 else value
    return rows, examples


def _pinned(document: Mapping[str, Any]) -> dict[str, Any]:
    source = {"uri": "rows.jsonl", "blake3": "0" * 64}
    filled = {**document, "source": source}
    if "source" in document.get("few_shot", {}):
        filled["few_shot"] = {**document["few_shot"], "source": source}
    return filled


def _written(converted: Converted, rows: Sequence[Any], examples: Sequence[Any], folder: Path) -> Path:
    """The benchmark's file with its data beside it; examples are the first of theirs, as the worker has them."""
    where = {"where": where} if (where := converted.document["source"].get("where")) else {}
    document = {**converted.document, "source": _data(folder / "rows.jsonl", rows) | where}
    if few_shot := document.get("few_shot"):
        shown = list(converted.examples) or examples
        document["few_shot"] = {**few_shot, "select": "first"}
        if "source" in few_shot:
            document["few_shot"]["source"] = _data(folder / "examples.jsonl", shown) | (
                {} if converted.examples else where
            )
    path = folder / "benchmark.yaml"
    path.write_text(dump_yaml(document), "utf-8")
    return path


def _data(path: Path, rows: Sequence[Any]) -> dict[str, Any]:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return {"uri": path.name, "blake3": digest_bytes(path.read_bytes())}


def _request_differences(
    benchmark: BenchmarkVersion, composer: Composer, item: Item, sample: Mapping[str, Any]
) -> Iterator[str]:
    prompt = composer.prompt(item)
    arguments = sample["arguments"]
    if benchmark.kind == "loss":
        expected: list[Any] = [[prompt.context]]
    elif benchmark.kind == "choice":
        expected = [[prompt.context, prompt.delimiter + choice] for choice in prompt.choices]
    else:
        expected = [[prompt.context]]
        arguments = [[arguments[0][0]]]
        settings = sample["arguments"][0][1]
        until = settings.get("until") or []
        stops = [stop for stop in dict.fromkeys([until] if isinstance(until, str) else until) if stop]
        if stops != list(benchmark.template.stop):
            yield f"stops {benchmark.template.stop} / {until}"
        lengths = [settings[name] for name in ("max_gen_toks", "max_new_tokens") if name in settings] or [256]
        if benchmark.max_tokens != lengths[-1]:
            yield f"max_tokens {benchmark.max_tokens} / {lengths}"
    if expected != arguments:
        yield f"request {expected!r} / {arguments!r}"


def _score_differences(
    benchmark: BenchmarkVersion, notes: Sequence[str], item: Item, sample: Mapping[str, Any]
) -> Iterator[str]:
    row = _response(benchmark, item, sample["resps"])
    ours = {found.metric: found for found in score(benchmark, item, row)}
    for name, theirs in sample["metrics"].items():
        metric = _metric(benchmark, name, sample["filter"], notes)
        if metric not in ours:
            continue
        mine = ours[metric].value
        expected = _as_ours(name, theirs)
        if mine is None or not math.isclose(mine, expected, rel_tol=1e-12, abs_tol=1e-12):
            asked = f"{name} under {sample['filter']}"
            yield f"{asked}: {mine} / {expected} for {sample['resps']!r:.200}, gold {item.target!r}"


def _metric(benchmark: BenchmarkVersion, name: str, pipeline: str, notes: Sequence[str]) -> str:
    if name == "perplexity":
        return "nats"
    if name == "exact_match" and benchmark.scorer.name == "strict_flexible":
        note = next(note for note in notes if note.startswith(_STRICT))
        return "strict" if note.startswith(f"{_STRICT}{pipeline!r}") else "flexible"
    return name


def _as_ours(name: str, value: Any) -> float:
    if name == "perplexity":
        return -float(value)
    if name == "bits_per_byte":
        logprob, n_bytes = value
        return -float(logprob) / math.log(2) / n_bytes
    return float(value)


def _response(benchmark: BenchmarkVersion, item: Item, answers: Sequence[Any]) -> Response:
    blank = Response(benchmark_id=benchmark.benchmark_id, item_id=item.item_id, status="ok", prompt_digest="")
    values: dict[str, Any] = {}
    if benchmark.kind == "generation":
        values = {"output": answers[0][0]}
    elif benchmark.kind == "choice":
        values = {
            "logprobs": tuple(float(each[0][0]) for each in answers),
            "greedy": tuple(bool(each[0][1]) for each in answers),
        }
    else:
        (((logprob,),),) = (answers,)
        text = str(item.fields[next(name for name in item.fields if name != "row")])
        values = {"logprobs": (logprob,), "token_logprobs": ((logprob,),), "n_bytes": len(text.encode())}
    return replace(blank, **values)


def main() -> None:
    """Tasks of the wheel that convert, with their own number of examples and with two: what differs, and how much.

    Arguments: names of tasks, or ``--all`` for all of them; without any, one task of every shape.
    """
    import sys
    import tempfile

    from eval_tasks.settings import Settings
    from eval_tasks.store import open_store
    from tests.parity.reference import reference_python

    counts: Counter[str] = Counter()
    wanted = sys.argv[1:]
    shapes: set[str] = set()
    with Reference(reference_python()) as reference, tempfile.TemporaryDirectory() as scratch:
        root = Path(reference.ask("tasks_folder")["folder"])
        for path, converted in task_files(root):
            if wanted not in ([], ["--all"]) and converted.task not in wanted:
                continue
            if not wanted and shape_of(converted) in shapes:
                continue
            shapes.add(shape_of(converted))
            for k in (None, 2):
                folder = Path(scratch) / f"{converted.name}-{k}"
                folder.mkdir()
                with open_store(Settings(home=folder / "home")) as store:
                    outcome, detail = _outcome(path, k, reference, store, folder)
                counts[outcome] += 1
                if outcome != "same":
                    print(json.dumps({"task": converted.task, "k": k, "outcome": outcome, "detail": detail}))  # noqa: T201
    print(json.dumps(dict(counts)))  # noqa: T201


def _outcome(path: Path, k: int | None, reference: Reference, store: Store, folder: Path) -> tuple[str, str]:
    try:
        found = differences(path, k, reference, store, folder)
    except NoRowsError:
        return "no rows", ""
    except Refusal as refusal:
        return "refused", str(refusal)
    except UserError as error:
        return "not registered", str(error)
    return ("different", found[0]) if found else ("same", "")


if __name__ == "__main__":
    main()
